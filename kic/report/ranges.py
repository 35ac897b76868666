"""Coordinates moved one at a time about a posture, as far as the loops let them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.configuration import Configuration
from kic.kinematics.scales import coordinate_units
from kic.mechanism import Mechanism
from kic.report.report import coordinate_values

# what turns is moved by half a turn either way, what slides by so much of the mechanism's length
HALF_TURN, SLIDE = np.pi, 0.5
# postures either way: a turn in steps of three degrees
STEPS = 60


@dataclass(frozen=True, eq=False)
class CoordinateRange:
    """One coordinate moved alone, the others staying as they are.

    Attributes
    ----------
    name, unit : str
        The coordinate.
    values : (n,) ndarray
        Its values, those of the posture in the middle.
    configuration : Configuration
        The postures (n,); those that were not reached are masked.
    """

    name: str
    unit: str
    values: np.ndarray
    configuration: Configuration

    @property
    def here(self) -> int:
        """Index of the posture itself."""
        return len(self.values) // 2

    @property
    def reached(self) -> tuple[float, float]:
        """The first and the last value with a posture."""
        there = self.values[self.configuration.ok]
        return float(there[0]), float(there[-1])

    @property
    def whole(self) -> bool:
        """Whether every posture was reached."""
        return bool(self.configuration.ok.all())


def coordinate_ranges(mechanism: Mechanism, configuration: Configuration) -> list[CoordinateRange]:
    """Every coordinate of a mechanism moved alone about a posture.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism.
    configuration : Configuration
        One posture of it.

    Returns
    -------
    list of CoordinateRange
        One for each coordinate. Of a mechanism with loops none where a coordinate has no value, as that of a
        ball; paths there end where the loops can go no further on their branch.

    Examples
    --------
    >>> import kic
    >>> from kic.report.ranges import coordinate_ranges
    >>> m = kic.load("four-bar")
    >>> turn = coordinate_ranges(m, m.at())[0]
    >>> turn.name, turn.whole
    ('A', True)
    """
    names, start = configuration.coordinates, coordinate_values(configuration)
    if np.isnan(start).any():
        return []
    units = coordinate_units(mechanism)
    found = []
    for k, name in enumerate(names):
        half = HALF_TURN if units[name] == "rad" else SLIDE * mechanism._model.length
        steps = half * np.linspace(-1, 1, 2 * STEPS + 1)
        way = np.tile(start, (len(steps), 1))
        way[:, k] += steps
        found.append(
            CoordinateRange(name, units[name], way[:, k].copy(), _led(mechanism, configuration, way))
        )
    return found


def _led(mechanism: Mechanism, configuration: Configuration, way: np.ndarray) -> Configuration:
    """Postures (n,) led to both ends of a way (n, M) from its middle."""
    model = mechanism._model
    if model.tree.open:
        return mechanism.at(way)
    middle = len(way) // 2
    up = mechanism.path(_named(mechanism, way[middle:]), configuration, failures="mask")
    down = mechanism.path(_named(mechanism, way[middle::-1]), configuration, failures="mask")
    states = np.concatenate([down.state[:0:-1], up.state])
    ok = np.concatenate([down.ok[:0:-1], up.ok])
    return Configuration(model, ok.shape, states, ok)


def _named(mechanism: Mechanism, way: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(mechanism.coordinate_names, way.T, strict=True))
