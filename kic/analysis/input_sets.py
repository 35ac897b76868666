"""Independent sets: which coordinates can drive a mechanism, and how well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.display import Summary
from kic.errors import InputError, SingularError, batch_indices, short_repr
from kic.kinematics.outputs import make_rows
from kic.numerics.arguments import integer, item, names_of
from kic.numerics.linalg import min_singular_value, null_space
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.coordinate_transfer import RANK_SHARE
from kic.transfer.input_selection import Ranking, ranking

# a set that moves less than this can not drive the mechanism: closed postures are known to about 1e-13
STILL = 1e-9


@dataclass(frozen=True)
class IndependentSet:
    """One set of coordinates, with how well it drives the mechanism.

    Attributes
    ----------
    names : tuple of str
        The coordinates, fit for ``wrt=``; those with a value also for `Mechanism.at`.
    worst, median : float
        The least that the set moves, at the worst posture and in the middle of all: smallest singular value
        of its scaled rows on the orthonormal motions that the closure leaves. Between 0, where the set can
        not drive the mechanism, and 1 for joints.
    where : tuple of int
        Index, in the batch, of the worst posture.
    """

    names: tuple[str, ...]
    worst: float
    median: float
    where: tuple[int, ...]


class IndependentSets:
    """Sets of coordinates that can drive a mechanism, the best first. Made by `Mechanism.independent_sets`.

    Iterable; ``sets[0].names`` is the best.

    Attributes
    ----------
    sets : tuple of IndependentSet
        Ranked by their worst posture, then by the median.
    freedoms : int
        How many coordinates a set has.
    among : tuple of str
        The candidates; those without a value only if they had to stand in.
    always : tuple of str
        Candidates that are in every set: what they move, such as a link that spins between two balls, nothing
        else does, or nothing else that has a value.
    tried, total : int
        How many sets were tried, of how many. Where these differ, a better one may exist.

    Examples
    --------
    >>> import kic
    >>> kic.load("four-bar").independent_sets(count=2)
    four-bar: independent sets of 1 among A, B, C, D
    all 4 sets were tried
    <BLANKLINE>
    sets, by the least that they move
         conditioning
      B       0.77989
      A       0.58492
    """

    def __init__(
        self,
        name: str,
        sets: tuple[IndependentSet, ...],
        among: tuple[str, ...],
        always: tuple[str, ...],
        batch: tuple[int, ...],
        tried: int,
        total: int,
    ) -> None:
        self._name, self._batch = name, batch
        self.sets, self.among, self.always = sets, among, always
        self.tried, self.total = tried, total

    @property
    def dof(self) -> int:
        """How many coordinates a set has."""
        return len(self.sets[0].names)

    def __iter__(self) -> Iterator[IndependentSet]:
        return iter(self.sets)

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, k: int) -> IndependentSet:
        return item(self.sets, k)

    def summary(self) -> Summary:
        """Labelled table of the sets, to print or to show."""
        among = ", ".join(self.among)
        sheet = Summary(f"{self._name}: independent sets of {self.dof} among {among}")
        if self.tried == self.total:
            sheet.say(f"all {self.total} sets were tried" if self.total > 1 else "there is no other set")
        else:
            sheet.say(
                f"{self.tried} of {self.total} sets were tried, by pivoted QR and exchange of one coordinate "
                "after the other; a better one may exist"
            )
        if self.always and len(self.among) > self.dof:
            sheet.say(f"in every set: {', '.join(self.always)}")
        names = [", ".join(one.names) for one in self.sets]
        if self._batch:
            numbers = np.array([[one.worst, one.median] for one in self.sets])
            cells = [[f"{x:.5g}" for x in line] for line in numbers]
            where = [str(one.where[0] if len(one.where) == 1 else one.where) for one in self.sets]
            cells = [[*line, at] for line, at in zip(cells, where, strict=True)]
            sheet.texts(
                f"sets, by the least that they move in a batch {self._batch}",
                names,
                ["worst", "median", "worst member"],
                cells,
            )
        else:
            values = np.array([[one.worst] for one in self.sets])
            sheet.matrix("sets, by the least that they move", names, ["conditioning"], values)
        return sheet

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def independent_sets(model: CompiledModel, at: Any, among: Any, count: Any) -> IndependentSets:
    """Candidate sets ranked; see `Mechanism.independent_sets`."""
    model.require_real("independent_sets()", "Ask the mechanism outside, and name coordinates inside.")
    who, freedoms = model.description.name, model.dof
    count = integer("count", count, 1)
    if not freedoms:
        why = f"'{who}' has no freedom; no set of coordinates drives it. {model.mobility.doubt()}"
        raise InputError(why.rstrip())
    labels, valued = _candidates(model, among)
    if len(labels) < freedoms:
        raise InputError(
            f"'{who}' has mobility {freedoms}; `among` has {len(labels)} coordinates only: "
            f"{', '.join(labels) or 'none'}. Name more candidates, or none for all joints.",
            mobility=freedoms,
            count=len(labels),
        )
    states, members, batch = _postures(model, at)
    with batch_indices(members, batch):
        J = _on_motions(model, labels, states, members, freedoms)
    found = ranking(J, valued, int(count))
    some = found.measures.max(axis=1, initial=0.0) > STILL
    if not some.any():
        raise SingularError(
            f"No set of {freedoms} among {', '.join(labels)} can drive '{who}' here: while all of them stand "
            f"still, {_loose(model, labels, states)} can move. Name others among the candidates.",
            among=labels,
        )
    sets = tuple(
        IndependentSet(
            tuple(labels[n] for n in pick),
            float(x.min()),
            float(np.median(x)),
            tuple(int(i) for i in np.unravel_index(members[int(np.argmin(x))], batch)) if batch else (),
        )
        for pick, x in zip(found.picks[some], found.measures[some], strict=True)
    )
    always = tuple(labels[n] for n in found.pool if _indispensable(J, int(n), found, valued))
    among = tuple(labels[n] for n in found.pool)
    return IndependentSets(who, sets, among, always, batch, found.tried, found.total)


def _candidates(model: CompiledModel, among: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """Rows that may be coordinates, and which of them have a value."""
    drawing, tree = model.description, model.tree
    if among is None:
        moving = [joint for joint in drawing.joints if joint.dof]
        # a free joint that is cut ties nothing
        names = tuple(j.name for j in moving if not (j in tree.cuts and j.type == "free"))
    else:
        names = names_of(among, "among")
    still = [name for name in names if name in drawing.fixed_distances]
    if still:
        raise InputError(
            f"Distance '{still[0]}' of '{drawing.name}' is fixed and can be no coordinate.", name=still[0]
        )
    if not names:
        return (), np.zeros(0, dtype=bool)
    rows = make_rows(tree, names)
    value = dict(zip(rows.labels, rows.valued.tolist(), strict=True))
    return tuple(value), np.array(list(value.values()), dtype=bool)


def _postures(model: CompiledModel, at: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """States (B, S), which members of the batch they are, and the batch."""
    if at is None:
        return model.reference_state, np.zeros(1, dtype=np.intp), ()
    who = model.description.name
    if not isinstance(at, Configuration) or at._model.description != model.description:
        of = f", got one of '{at.name}'" if isinstance(at, Configuration) else f", got {short_repr(at)}"
        raise InputError(f"Expected `at` to be a posture of '{who}', made by at(){of}.")
    if at._states.dtype != np.float64:
        raise InputError(f"Expected `at` to hold real numbers, got {at._states.dtype}.")
    members = np.flatnonzero(at.ok)
    if not members.size:
        raise InputError(f"Expected `at` to hold a posture at least, got a batch {at.batch} without one.")
    return at._states[members], members, at.batch


def _on_motions(
    model: CompiledModel, labels: tuple[str, ...], states: np.ndarray, members: np.ndarray, freedoms: int
) -> np.ndarray:
    """Scaled rows (B, R, f) on the motions that the closure leaves."""
    closure = model.closure(labels)
    first = closure.transfer.first
    G = closure.rows(states)[1]
    if not np.isfinite(G).all():
        raise InputError(
            f"A distance among {', '.join(labels)} is zero here, where it has no derivatives. Leave it out."
        )
    closing = G[:, first:]
    held = model.tree.size - freedoms
    if held:
        sigma = np.linalg.svd(closing, compute_uv=False)
        bad = ~(sigma[:, held - 1] > RANK_SHARE * sigma[:, 0])
        if bad.any():
            few = ", ".join(map(str, members[bad][:4])) + (", …" if bad.sum() > 4 else "")
            which = f" (members {few} of the batch)" if len(members) > 1 else ""
            raise SingularError(
                f"Closure conditions of '{model.description.name}' depend on one another at this posture{which}: "
                f"it has more than {freedoms} freedoms here, and no set of {freedoms} coordinates drives it. "
                "Give `at=` postures off this one, where several motions meet.",
                freedoms=freedoms,
                failed=np.flatnonzero(bad).tolist(),
            )
    return G[:, :first] @ null_space(closing, freedoms)


def _indispensable(J: np.ndarray, n: int, found: Ranking, valued: np.ndarray) -> bool:
    """Whether no set without row n of J (B, R, f) drives the mechanism anywhere.

    What has no value stands in for what nothing else has, but not for this row.
    """
    rest = found.pool[found.pool != n]
    own = rest[valued[rest]]
    few = len(rest) < J.shape[2] or len(own) < found.share
    return few or bool(
        (
            (min_singular_value(J[:, rest]) <= STILL) | (min_singular_value(J[:, own], found.share) <= STILL)
        ).all()
    )


def _loose(model: CompiledModel, labels: tuple[str, ...], states: np.ndarray) -> str:
    """What can move at the first of some postures while rows stand still."""
    closure = model.closure(labels)
    return closure.transfer.unconstrained_coordinates(closure.rows(states[:1])[1][0])
