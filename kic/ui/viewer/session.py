"""State of a viewer without a browser: one configuration that is moved and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from kic.analysis.joint_forces.force_table import transmission_angle
from kic.analysis.positions.singularities import Singularities, Singularity
from kic.description.joint_types import BALL_TYPES
from kic.description.parts import Distance, Force, Joint, Moment, Point
from kic.description.units import row_unit
from kic.description.validation import GROUND, part_of
from kic.errors import ConfigurationError, KicError, SingularError, invalid
from kic.kinematics.outputs import XYZ
from kic.kinematics.tree import ball_axes
from kic.mechanism.configuration import Configuration, displacement, model_of
from kic.mechanism.mechanism import Mechanism
from kic.numerics.arguments import names_of
from kic.numerics.linalg import null_space
from kic.numerics.rotations import vector_from_matrix
from kic.ui.report.ranges import ANGLE_RANGE, LENGTH_RANGE_FACTOR, STEPS_PER_SIDE, coordinate_ranges
from kic.ui.report.report import coordinate_values, default_outputs

# steps toward one target; a drag continues at the next target
_STEPS_MAX = 8
# largest change of a coordinate in one step: angle in rad, length as a share of the mechanism's
_STEP_ANGLE_MAX, _STEP_LENGTH_FACTOR = 0.4, 0.15
# directions with smaller singular values are omitted from a step, as a share of the largest
_RANK_RTOL = 1e-4
_SHORTER_FACTOR = 0.25
# a step must reduce the distance by this share, and distances below this share of the size are zero
_GAIN_MIN, _DISTANCE_RTOL = 1e-3, 1e-9
# largest difference of the coordinates of one singular configuration found on two paths
_SAME_ATOL = 1e-5
# share of the lost direction from which a driver is marked at a dead centre
_LOST_MIN = 0.01
_MODE_STARTS = 32
# name of distances that hold drivers without values
_HELD = "viewer's held"
# ratio of these distances to the length of their arms at 45° and 135°; at 0° and 180° they hold nothing
_HELD_MIN, _HELD_MAX = 0.765, 1.848
# names of the parts of a load
_LOAD_POINT, _LOAD_FORCE, _LOAD_MOMENT = "viewer's load", "viewer's force", "viewer's moment"


class Session:
    """One configuration of a mechanism that is moved step by step on its branch.

    Attributes
    ----------
    mechanism : Mechanism
    configuration : Configuration
        The present configuration.
    drivers : tuple of str
        Rows that are set by `move`, and that follow in `drag`; one for each degree of freedom.
    message : str
        Reason why the last motion stopped; '' if it did not stop.
    blocked : bool
        True if the last motion stopped at a dead centre or at the limit of reach.
    load : tuple
        Part, or '', with the force (3,) on it and the moment (3,) on its body, set by `apply`.
    """

    def __init__(self, configuration: Configuration) -> None:
        if configuration.batch:
            raise invalid("configuration", "must be one configuration", configuration.batch)
        self.mechanism: Mechanism = model_of(configuration).description
        self.configuration = configuration
        self.drivers = self.mechanism.coordinates
        self.message, self.blocked = "", False
        self.load, self._loaded = ("", np.zeros(3), np.zeros(3)), (self.mechanism, self.mechanism)
        self._held: tuple[Any, ...] = ()

    def values(self) -> np.ndarray:
        """Return the values (M,) of the drivers; rotations are rotation vectors."""
        if self.drivers != self.mechanism.coordinates:
            return np.array([self.configuration.value(name) for name in self.drivers], float)
        found = dict(zip(self.drivers, coordinate_values(self.configuration), strict=True))
        for joint in self._balls():
            one, other = (self.frame(body)[:3, :3] for body in joint.bodies)
            turn = vector_from_matrix(one.T @ other) @ ball_axes(joint)
            for name, turned in zip(joint.components[-3:], turn, strict=True):
                if np.isnan(found[name]):
                    found[name] = turned
        return np.array(list(found.values()))

    def _balls(self) -> list[Joint]:
        """Return the spherical and free joints among the drivers; their rotations are set as a whole."""
        joints = [j for j in self.mechanism.joints if j.type in BALL_TYPES]
        return [joint for joint in joints if set(joint.components) <= set(self.drivers)]

    def drive(self, of: str) -> bool:
        """Choose other drivers by names separated by commas; return True if they drive the mechanism."""
        names = names_of([name.strip() for name in of.split(",") if name.strip()], "of")

        def try_values() -> Configuration:
            values = {name: self.configuration.value(name) for name in names}
            found = self.mechanism.at(values, near=self.configuration)
            found.coefficients(names, order=1, wrt=names)
            return found

        done = self._try(try_values)
        self.drivers = names if done else self.drivers
        return done

    def move(self, values: Mapping[str, float] | np.ndarray) -> bool:
        """Move toward values of the drivers along the branch; return True if they are reached."""
        wanted = dict(zip(self.drivers, self.values(), strict=True))
        wanted |= values if isinstance(values, Mapping) else dict(zip(self.drivers, values, strict=True))
        return self._try(partial(self._reached, wanted))

    def _reached(self, wanted: Mapping[str, Any]) -> Configuration:
        """Return the configuration with driver values; drivers without a value, such as spins, are kept."""
        m, near, inputs = self._solved(wanted)
        try:
            return _of(self.mechanism, m.at(inputs, near=near))
        except KicError as error:
            if isinstance(reached := error.numbers.get("reached"), Configuration):
                error.numbers["reached"] = _of(self.mechanism, reached)
            raise

    def _solved(self, wanted: Mapping[str, Any]) -> tuple[Mechanism, Configuration, dict[str, Any]]:
        """Return the mechanism that is solved, its present configuration, and inputs for its `at`."""
        m, held = self._holding()
        near, inputs = _of(m, self.configuration), self._inputs(wanted)
        rest = {name: near.value(name) for name in held.values()}
        arm = model_of(self.mechanism).length
        if not all(_HELD_MIN * arm <= x <= _HELD_MAX * arm for x in rest.values()):
            self._held = ()  # the parts turned: place the points anew
            return self._solved(wanted)
        return m, near, {name: x for name, x in inputs.items() if name not in held} | rest

    def _holding(self) -> tuple[Mechanism, dict[str, str]]:
        """Return the mechanism with a distance for each driver without a value, and the distances by driver.

        The distance is between two points at a right angle about the axis of the driver, one on each body of
        its spherical joint, so that it changes with the rotation about this axis.
        """
        own = self.mechanism, self.drivers
        if self._held[:2] != own:
            names = [name for name, x in zip(self.drivers, self.values(), strict=True) if np.isnan(x)]
            joints = {
                name: j for j in self.mechanism.joints if j.type == "spherical" for name in j.components
            }
            parts, held = list[Any](), dict[str, str]()
            for k, name in enumerate(names if joints.keys() >= set(names) else ()):
                joint, length = joints[name], model_of(self.mechanism).length
                turning = self.configuration.coefficients(joint.name, order=1, wrt=self.drivers).G
                axis = turning[:, self.drivers.index(name)]
                arm = length * null_space(axis[None], 2)
                on, across = np.array(joint.at) + arm.T
                first, other = (self.frame(body) for body in joint.bodies)
                place = np.linalg.solve(other, first @ [*across, 1.0])[:3]
                ends = f"{_HELD} {k} on", f"{_HELD} {k} across"
                parts += [
                    Point(ends[0], joint.bodies[0], tuple(on)),
                    Point(ends[1], joint.bodies[1], tuple(place)),
                ]
                held[name] = f"{_HELD} {k}"
                parts.append(Distance(held[name], ends))
            self._held = *own, (self.mechanism.add(*parts) if parts else self.mechanism, held)
        return self._held[2]

    def _inputs(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return values of the drivers as inputs of `Mechanism.at`."""
        balls = {j.name: np.stack([wanted[name] for name in j.components], axis=-1) for j in self._balls()}
        parts = {name for j in self._balls() for name in j.components}
        return balls | {name: value for name, value in wanted.items() if name not in parts}

    def _try(self, solve: Callable[[], Configuration]) -> bool:
        """Set the configuration that `solve` returns or, on an error, the last configuration reached."""
        try:
            self.configuration, self.message, self.blocked = solve(), "", False
        except (ConfigurationError, SingularError) as error:
            reached = error.numbers.get("reached")
            reasons = error.numbers.get("reasons")
            if isinstance(reached, Configuration):
                self.configuration = reached[0]
            self.message, self.blocked = (reasons[0] if reasons else str(error)), True
        except KicError as error:
            self.message, self.blocked = str(error), False
        return not self.message

    def modes(self) -> Configuration:
        """Return the assembly modes (K,) with the present values of the drivers, the nearest first.

        Of modes that differ in spins alone, only the nearest is returned.
        """
        m, near, values = self._solved(dict(zip(self.drivers, self.values(), strict=True)))
        modes = m.assembly_modes(values, near=near, starts=_MODE_STARTS).configuration
        found = _of(self.mechanism, modes)
        if m is self.mechanism:
            return found
        # a distance that holds a spin is the same at two of its values
        seen, kept = self._without_spins(found), list[int]()
        for k, row in enumerate(seen):
            if not (np.abs(seen[kept] - row).max(axis=1, initial=0.0) < _SAME_ATOL).any():
                kept.append(k)
        return found[kept]

    def _without_spins(self, c: Configuration) -> np.ndarray:
        """Return joint positions and coordinates (K, n) that do not depend on spins of rods."""
        length, columns = model_of(self.mechanism).length, list[np.ndarray]()
        for joint in self.mechanism.joints:
            if joint.at is not None:
                body = next(body for body in joint.bodies if body != GROUND)
                columns += [c.pose(body).apply(joint.at).reshape(-1, 3) / length]
            for name, is_length in zip(joint.valued, joint.translations, strict=False):
                x = c.value(name)
                columns += [x[:, None] / length] if is_length else [np.stack([np.cos(x), np.sin(x)], axis=-1)]
        return np.concatenate(columns, axis=-1)

    def singular(self, of: str) -> list[Singularity]:
        """Return singular configurations on the path of each driver alone, the nearest first.

        They are singularities of the drivers, of the closure and, with enough degrees of freedom, of a part.
        """
        m, start, found = self.mechanism, self.values(), list[tuple[float, Singularity]]()
        G = answer(lambda: self.configuration.coefficients([f"{of}.{x}" for x in XYZ], order=1).G)
        moving = () if isinstance(G, str) else np.flatnonzero(np.abs(G).max(axis=1) > _GAIN_MIN)
        rows = [f"{of}.{XYZ[k]}" for k in moving]
        share = np.linspace(0, 1, STEPS_PER_SIDE + 1)
        for k, name in enumerate(self.drivers):
            half = ANGLE_RANGE if row_unit(m, name) == "rad" else LENGTH_RANGE_FACTOR * model_of(m).length
            for step in (-half, half):
                values = np.tile(start, (len(share), 1))
                values[:, k] += step * share
                path = answer(partial(self._path, values))
                if isinstance(path, str):
                    continue
                for outputs in (rows, None):
                    there = answer(partial(path.singularities, drivers=self.drivers, of=outputs))
                    if isinstance(there, Singularities):
                        found += [(share[one.between[0][0]], one) for one in there]
                        break
        nearest = list[Singularity]()
        for _, one in sorted(found, key=lambda pair: pair[0]):
            states = [other.configuration.state for other in nearest]
            if all(np.abs(state - one.configuration.state).max() > _SAME_ATOL for state in states):
                nearest.append(one)
        return nearest

    def apply(self, part: str, force: np.ndarray, moment: np.ndarray) -> None:
        """Set the load: a force (3,) at a part and a moment (3,) on its body, in world axes.

        An empty `part` removes the load.
        """
        self.load, self._loaded = (part, force, moment), (self.mechanism, self.mechanism)

    def loaded(self, c: Configuration) -> Configuration:
        """Return configurations of the mechanism with the load."""
        part, force, moment = self.load
        (of, loaded), m = self._loaded, self.mechanism
        if not part:
            return c
        if of is not m or loaded is m:
            places = {b.name: (b.name, b.reference) for b in m.bodies}
            places |= {f.name: (f.body, f.origin) for f in m.frames} | {
                p.name: (p.body, p.at) for p in m.points
            }
            body, at = places[part]
            load: list[Any] = [Point(_LOAD_POINT, body, at or (0.0, 0.0, 0.0))]
            load += [Force(_LOAD_FORCE, _LOAD_POINT, force), Moment(_LOAD_MOMENT, body, moment)]  # type: ignore[arg-type]
            loaded = m.add(*load)
            self._loaded = m, loaded
        return _of(loaded, c)

    def change(self, part: str, at: np.ndarray) -> bool:
        """Move a joint or point to a reference position (3,); return True if possible.

        The drivers keep their values as far as the changed mechanism reaches them.
        """
        wanted = dict(zip(self.drivers, self.values(), strict=True))

        def solve() -> Configuration:
            changed = self.mechanism.replace(part, at=tuple(map(float, at)))
            start = changed.at()
            self.mechanism = changed
            self.configuration = start
            return self._reached(wanted)

        return self._try(solve)

    def follow(self, frames: Configuration) -> Configuration:
        """Return configurations (F,) of the changed mechanism with the drivers' values in the given frames.

        Members out of reach are not `ok`.
        """
        old, values = Session(frames[0]), []
        old.drivers = self.drivers
        for frame in frames:
            old.configuration = frame
            values.append(old.values())
        found = answer(partial(self._path, np.array(values)))
        if isinstance(found, str):  # its drivers cannot move it, such as in a singular configuration
            count, state = len(values), self.configuration.state
            return Configuration(
                model_of(self.mechanism), (count,), np.tile(state, (count, 1)), np.zeros(count, bool)
            )
        return found

    def _path(self, values: np.ndarray) -> Configuration:
        """Return configurations (T,) with values (T, M) of the drivers, masked where out of reach."""
        m, near, inputs = self._solved(dict(zip(self.drivers, values.T, strict=True)))
        return _of(self.mechanism, m.path(inputs, near=near, failures="mask"))

    def pivots(self) -> dict[str, str]:
        """Return the names of joints and points that can be moved, with the body that carries each."""
        placed = [j for j in self.mechanism.joints if j.at is not None]
        joints = {j.name: GROUND if GROUND in j.bodies else j.bodies[0] for j in placed}
        return joints | {p.name: p.body for p in self.mechanism.points}

    def frame(self, body: str) -> np.ndarray:
        """Return the displacement (4, 4) of a body from the reference configuration."""
        return np.eye(4) if body == GROUND else displacement(self.configuration, body)

    def stopped(self) -> np.ndarray:
        """Return the positions (n, 3) of the drivers at a dead centre; none unless the motion is blocked."""
        if not self.blocked:
            return np.zeros((0, 3))
        c, m = self.configuration, self.mechanism
        joints = {name: j for j in m.joints for name in (j.name, *j.components)}
        ends = {one.name: one.points for one in m.distances}
        moving = [j.name for j in m.joints if j.dof]
        # rates of the joints grow without bound along the direction that the drivers lose
        G = answer(lambda: c.coefficients(moving, order=1, wrt=self.drivers).G * self._steps())
        lost = np.ones(len(self.drivers)) if isinstance(G, str) else np.abs(np.linalg.svd(G)[2][0])
        places = []
        for name, share in zip(self.drivers, lost / lost.max(), strict=True):
            if share < _LOST_MIN:
                continue
            if name in joints:
                places.append(self._place(joints[name]))
            elif name in ends:
                places += [c.value([f"{end}.{x}" for x in XYZ]) for end in ends[name]]
            elif isinstance(T := answer(partial(self.pose, part_of(name))), np.ndarray):
                places.append(T[:3, 3])
        return np.reshape(places, (-1, 3))

    def _steps(self) -> np.ndarray:
        """Return the largest changes (M,) of the drivers in one step."""
        largest = {"rad": _STEP_ANGLE_MAX}
        length = _STEP_LENGTH_FACTOR * model_of(self.mechanism).length
        return np.array([largest.get(row_unit(self.mechanism, name), length) for name in self.drivers])

    def _place(self, joint: Joint) -> np.ndarray:
        """Return the position (3,) of a joint; without `at`, the mean position of neighbouring joints."""
        near = [joint] if joint.at is not None else [j for j in self.mechanism.joints if j.at is not None]
        shared = [(j, [body for body in j.bodies if body in joint.bodies]) for j in near]
        found = [self.frame(own[0]) @ (*(j.at or ()), 1.0) for j, own in shared if own]
        return np.mean(found, axis=0)[:3] if found else self.configuration.value("com")

    def numbers(self, of: str) -> str:
        """Return the tables of a part and of the dynamics in the drivers, as text."""
        c, wrt = self.configuration, self.drivers
        ask: list[Callable[[], Any]] = [
            lambda: c.coefficients(of, order=1, wrt=wrt).summary(),
            lambda: c.ellipsoid([f"{of}.{x}" for x in XYZ], wrt=wrt).summary(),
            lambda: c.singularities(drivers=wrt).summary(),
            lambda: c.dynamics(wrt=wrt).summary(),
            lambda: f"static efforts\n{_table(wrt, self.loaded(c).inverse_dynamics(wrt=wrt))}",
            lambda: f"centre of mass\n{_table(XYZ, c.value('com'))}",
        ]
        return "\n\n".join(str(answer(one)) for one in ask)

    def curves(self, of: str) -> dict[str, np.ndarray]:
        """Return positions "curve" (n, 3) of a part while the only coordinate moves, and quantities (n,).

        The branch is followed to its ends. The second key is the coordinate, the remaining keys are its
        effort in static equilibrium and transmission angles. It is empty with several degrees of freedom.
        """
        ranges = coordinate_ranges(self.mechanism, self.configuration) if self.mechanism.dof == 1 else []
        found = {}
        for one in ranges:
            c = one.configuration[one.configuration.ok]
            found["curve"] = c.value([f"{of}.{x}" for x in XYZ])
            found[one.name] = one.values[one.configuration.ok]
            found |= {name: got.reshape(len(c)) for name, got in self.quantities(c).items()}
        return found

    def plots(self) -> tuple[str, ...]:
        """Return the names of `quantities`; dynamics are compiled only when efforts are plotted."""
        effort = f"effort {self.mechanism.coordinates[0]}" if self.mechanism.dof == 1 else ""
        return (*self._transmissions(self.configuration), *([effort] if effort else ()))

    def _transmissions(self, c: Configuration) -> dict[str, np.ndarray]:
        """Return the transmission angles (...) by joint; none with several degrees of freedom."""
        joints = self.mechanism.joints if self.mechanism.dof == 1 else ()
        answers = {f"transmission {j.name}": answer(partial(transmission_angle, c, j.name)) for j in joints}
        return {name: np.asarray(got) for name, got in answers.items() if not isinstance(got, str)}

    def quantities(self, c: Configuration) -> dict[str, np.ndarray]:
        """Return transmission angles (...) by name and, for one degree of freedom, the effort (...)."""
        found = self._transmissions(c)
        if self.mechanism.dof == 1:
            effort = answer(partial(self.loaded(c).inverse_dynamics, failures="mask"))
            if not isinstance(effort, str):
                found[f"effort {self.mechanism.coordinates[0]}"] = effort
        return found

    def pose(self, part: str) -> np.ndarray:
        """Return the position and, of a body or frame, the axes of a part as a pose (4, 4)."""
        T = np.eye(4)
        if self._turns(part):
            T[:3, :3] = self.configuration.pose(part).rotation.as_matrix()
        T[:3, 3] = self.configuration.value([f"{part}.{x}" for x in XYZ])
        return T

    def _turns(self, part: str) -> bool:
        m = self.mechanism
        return part in {body.name for body in m.bodies} | {frame.name for frame in m.frames}

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts that can be dragged, the default output first."""
        m, parts = self.mechanism, model_of(self.mechanism).parts
        names = [name for name in default_outputs(m) if name in parts]  # others are rows of a body
        names += [p.name for p in m.points if p.body != GROUND]
        names += [f.name for f in m.frames if f.body != GROUND] + [
            b.name for b in m.bodies if b.reference is not None
        ]
        return tuple(dict.fromkeys(names))

    def drag(self, part: str, target: np.ndarray, turn: bool = False) -> float:
        """Move a part toward a pose (4, 4) on the branch; return the remaining distance.

        The drivers follow by the smallest change. Rotations count if `turn` is True and the part is a body
        or a frame. `blocked` is True if the drivers stop at a dead centre before the nearest configuration.
        """
        length = model_of(self.mechanism).length
        turn = turn and self._turns(part)
        rows = [f"{part}.{x}" for x in (*XYZ, *(("wx", "wy", "wz") if turn else ()))]
        scale = np.array([1.0] * 3 + [length] * (len(rows) - 3))
        limit = self._steps()
        stop, share = "", 1.0
        error = self._away(part, target, turn) * scale
        for _ in range(_STEPS_MAX):
            distance = float(np.linalg.norm(error))
            if distance < _DISTANCE_RTOL * length:
                break
            before = self.configuration
            try:
                G = before.coefficients(rows, order=1, wrt=self.drivers).G
            except SingularError as singular:
                stop = str(singular)
                break
            step = np.linalg.lstsq(scale[:, None] * G * limit, error, rcond=_RANK_RTOL)[0]
            step = limit * step / max(1.0, float(np.abs(step).max(initial=0.0)))
            reached = self.move(self.values() + share * step)
            stop = stop if reached else self.message
            tried = self._away(part, target, turn) * scale
            if distance - float(np.linalg.norm(tried)) < _GAIN_MIN * distance:
                self.configuration, share = before, _SHORTER_FACTOR * share
                continue
            error = tried
            if not reached:
                break
            stop = ""
        self.message, self.blocked = stop, bool(stop)
        return float(np.linalg.norm(error))

    def _away(self, part: str, target: np.ndarray, turn: bool) -> np.ndarray:
        """Return the translation, and the rotation vector if requested, from a part to a target."""
        now = self.pose(part)
        away = target[:3, 3] - now[:3, 3]
        if not turn:
            return away
        return np.concatenate([away, vector_from_matrix(target[:3, :3] @ now[:3, :3].T)])


def _of(m: Mechanism, c: Configuration) -> Configuration:
    """Convert configurations to a mechanism with the same tree."""
    if model_of(c) is model_of(m):
        return c
    return Configuration(model_of(m), c.batch, np.reshape(c.state, (-1, c.state.shape[-1])), c.ok)


def answer(ask: Callable[[], Any]) -> Any:
    """Call a function; return its result, or the message of its error."""
    try:
        return ask()
    except KicError as error:
        return str(error)


def _table(names: Iterable[str], values: np.ndarray) -> str:
    return "\n".join(f"  {name}  {value:.6g}" for name, value in zip(names, values, strict=True))
