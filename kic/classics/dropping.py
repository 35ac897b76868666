"""What it costs to drop parts of a dynamic model: the effort that is then missing, over a motion."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kic.arrays import broadcast_batches, trailing
from kic.classics.entries import listed
from kic.errors import InputError
from kic.tables import Sheet


def said_of(postures: int) -> str:
    """How many postures, in words."""
    return f"{postures} posture{'' if postures == 1 else 's'}"


class DroppingCost:
    """Errors of the efforts of a simplified model over a motion, each beside the peak of its own effort.

    Parameters
    ----------
    coordinates : iterable of str
        Names of the M coordinates.
    dropped : iterable of str
        What was dropped, in words.
    effort, error : (..., M) ndarray
        Effort of the whole model, and effort of the simplified model less that, over a batch: the motion.

    Attributes
    ----------
    largest : (M,) ndarray
        Largest magnitude of the error over the motion.
    rms : (M,) ndarray
        Root of its mean square over the motion.
    peak : (M,) ndarray
        Largest magnitude of the effort of the whole model.
    share : (M,) ndarray
        Largest error as a share of the peak: 0 where there is no error, infinite where there is no effort.

    Raises
    ------
    InputError
        For a motion without any posture, or what are not numbers, one for each coordinate.

    Examples
    --------
    >>> DroppingCost(["A"], ["H_rot"], np.array([[8.0], [-10.0]]), np.array([[0.0], [1.0]]))
    dropped: H_rot
    <BLANKLINE>
    efforts and their errors over 2 postures
         largest error  RMS error  peak effort  largest / peak
      A              1    0.70711           10             0.1
    """

    def __init__(
        self, coordinates: Iterable[str], dropped: Iterable[str], effort: np.ndarray, error: np.ndarray
    ) -> None:
        self.coordinates, self.dropped = listed(coordinates), listed(dropped)
        size = len(self.coordinates)
        effort, error = (
            trailing(name, a, size, finite=False) for name, a in (("effort", effort), ("error", error))
        )
        if object in (effort.dtype, error.dtype):
            raise InputError("Costs are compared by size, which symbols have not. Give a motion in numbers.")
        broadcast_batches(effort=effort.shape[:-1], error=error.shape[:-1])
        self.effort, self.error = effort, error
        if 0 in effort.shape[:-1]:
            raise InputError(
                f"A motion needs postures to be judged by, got the empty batch {effort.shape[:-1]}.",
                batch=effort.shape[:-1],
            )
        over = tuple(range(effort.ndim - 1))
        self.largest = np.abs(error).max(axis=over)
        self.rms = np.sqrt((np.abs(error) ** 2).mean(axis=over))
        self.peak = np.abs(effort).max(axis=over)
        with np.errstate(divide="ignore"):
            self.share = np.divide(
                self.largest, self.peak, out=np.zeros_like(self.largest), where=self.largest != 0
            )

    @property
    def postures(self) -> int:
        """Number of postures of the motion."""
        return self.effort[..., 0].size

    def sheet(self) -> Sheet:
        """Labelled table, to print or to show."""
        sheet = Sheet(f"dropped: {'; '.join(self.dropped) or 'nothing'}")
        columns = ["largest error", "RMS error", "peak effort", "largest / peak"]
        sheet.matrix(
            f"efforts and their errors over {said_of(self.postures)}",
            self.coordinates,
            columns,
            np.stack([self.largest, self.rms, self.peak, self.share], axis=-1),
            # a share is no effort: each is shown beside its own
            largest=0.0,
        )
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()


class Survey:
    """Costs of several simplified models over one motion, side by side.

    Parameters
    ----------
    costs : iterable of DroppingCost
        The costs, all of the same whole model and motion.

    Attributes
    ----------
    costs : tuple of DroppingCost
        As given.
    share : (K, M) ndarray
        Largest error of each as a share of the peak effort.

    Raises
    ------
    InputError
        For no costs.

    Examples
    --------
    >>> effort, error = np.array([[8.0, 4.0]]), np.array([[0.0, 1.0]])
    >>> Survey([DroppingCost(["A", "B"], ["H_rot"], effort, error)]).share.tolist()
    [[0.0, 0.25]]
    """

    def __init__(self, costs: Iterable[DroppingCost]) -> None:
        self.costs = tuple(costs)
        if not self.costs:
            raise InputError("A survey needs costs to put side by side, got none.")
        self.share = np.stack([cost.share for cost in self.costs])

    def sheet(self) -> Sheet:
        """Labelled table, to print or to show."""
        first = self.costs[0]
        sheet = Sheet(f"one part dropped at a time, over {said_of(first.postures)}")
        labels = ["; ".join(cost.dropped) or "nothing" for cost in self.costs]
        sheet.matrix("largest error / peak effort", labels, first.coordinates, self.share, "dropped", 0.0)
        sheet.matrix("peak effort", [""], first.coordinates, first.peak[None], largest=0.0)
        return sheet

    def __repr__(self) -> str:
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()
