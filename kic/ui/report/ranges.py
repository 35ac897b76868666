"""Ranges of single coordinates about a configuration, as far as the loops close."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kic.description.units import coordinate_units
from kic.mechanism.configuration import Configuration, model_of
from kic.mechanism.mechanism import Mechanism
from kic.ui.report.report import coordinate_values

# range to either side: of angles in rad, of lengths as a share of the mechanism's characteristic length
ANGLE_RANGE, LENGTH_RANGE_FACTOR = np.pi, 0.5
# configurations to either side: 3° apart for angles
STEPS_PER_SIDE = 60


@dataclass(frozen=True, eq=False)
class CoordinateRange:
    """Configurations along one coordinate; the other coordinates are fixed."""

    name: str
    unit: str
    values: np.ndarray  # (n,): values of the coordinate, the given one in the middle
    configuration: Configuration  # (n,); members that were not reached are masked

    @property
    def index(self) -> int:
        """Index of the given configuration."""
        return len(self.values) // 2

    @property
    def limits(self) -> tuple[float, float]:
        """First and last values that were reached."""
        there = self.values[self.configuration.ok]
        return float(there[0]), float(there[-1])

    @property
    def complete(self) -> bool:
        """True if every configuration was reached."""
        return bool(self.configuration.ok.all())


def coordinate_ranges(mechanism: Mechanism, configuration: Configuration) -> list[CoordinateRange]:
    """Return the range of each coordinate, moved alone from a single configuration.

    The list is empty for a closed mechanism with a coordinate that has no value, such as that of a spherical
    joint. Paths of closed mechanisms end at the limits of their branch.

    Examples
    --------
    >>> from kic.ui.report.ranges import coordinate_ranges
    >>> m = kic.load("four-bar")
    >>> turn = coordinate_ranges(m, m.at())[0]
    >>> turn.name, turn.complete
    ('A', True)
    """
    names, start = configuration.coordinates, coordinate_values(configuration)
    if np.isnan(start).any():
        return []
    units = coordinate_units(mechanism)
    found = []
    for k, name in enumerate(names):
        half = ANGLE_RANGE if units[name] == "rad" else LENGTH_RANGE_FACTOR * model_of(mechanism).length
        steps = half * np.linspace(-1, 1, 2 * STEPS_PER_SIDE + 1)
        path = np.tile(start, (len(steps), 1))
        path[:, k] += steps
        followed = _follow_path(mechanism, configuration, path)
        found.append(CoordinateRange(name, units[name], path[:, k].copy(), followed))
    return found


def there_and_back(configuration: Configuration) -> Configuration:
    """Return a motion (F,), about 240 frames: each coordinate alone to both ends of its range and back.

    Without coordinate ranges, it is the configuration itself.
    """
    ranges, states = coordinate_ranges(model_of(configuration).description, configuration), []
    for one in ranges:
        reached = np.flatnonzero(one.configuration.ok)
        up, down = reached[reached >= one.index], reached[reached <= one.index]
        way = np.concatenate([up, up[::-1], down[::-1], down])
        states.append(one.configuration.state[way[:: len(ranges)]])
    frames = np.concatenate(states or [configuration.state[None]])
    return Configuration(model_of(configuration), (len(frames),), frames)


def _follow_path(mechanism: Mechanism, configuration: Configuration, path: np.ndarray) -> Configuration:
    """Return the configurations along a path (n, M), continued from its middle to both ends."""
    model = model_of(mechanism)
    if model.is_open_chain:
        return mechanism.at(path)
    middle, names = len(path) // 2, mechanism.coordinates
    down, up = (
        mechanism.path(dict(zip(names, half.T, strict=True)), near=configuration, failures="mask")
        for half in (path[middle::-1], path[middle:])
    )
    states = np.concatenate([down.state[:0:-1], up.state])
    ok = np.concatenate([down.ok[:0:-1], up.ok])
    return Configuration(model, ok.shape, states, ok)
