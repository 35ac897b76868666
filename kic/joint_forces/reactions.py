"""Reactions: joint forces, computed as the loads of (4-31) at coordinates that are held.

With every joint cut, w = (coordinates with actuators, closure rows of all joints) spans the motion of the
free bodies. The loads that move them are T_φ = [G^w]ᵀ T_w: the efforts, and the constraint loads T_c. In an
overconstrained mechanism there are more rows than motions. The loads then vary in the null space of [G^w]ᵀ;
components that do not vary are determined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.dynamics.friction import contact_force_check
from kic.errors import InputError, SingularError, batch_indices, invalid
from kic.joint_forces.joint_forces import COMPONENTS, JointForces, Split
from kic.kernels import layout as lay
from kic.kinematics.items import Item, heights
from kic.kinematics.outputs import make_rows, plain_rows
from kic.kinematics.queries import output_query
from kic.numerics.arguments import flag
from kic.numerics.arrays import broadcast_batches, check_finite, ordinary, real_array
from kic.numerics.tolerances import EPS
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.constraint_system import row_scales
from kic.transfer.free_bodies import FreeBodies, Places
from kic.transfer.rank import RANK_SHARE

# largest error of the null space of the joints at which components can be called determined
NULL_SPACE_ATOL_MAX = 1e-3
DETERMINED_CONDITION_MAX = NULL_SPACE_ATOL_MAX / (100 * EPS)
# entries of the equilibrium matrices that are solved at the same time; bounds the memory
BATCH_ENTRIES_MAX = 2**22
# residual of prescribed efforts, as a share of the loads of the motion
EFFORT_RTOL = 1e-6
# loads out of the plane, as a share of the largest load of a planar mechanism, that are round-off
OUT_OF_PLANE_RTOL = 1e-9


class Actuators:
    """Coordinates at which efforts act, as rows of the free bodies.

    An effort at a joint acts between its bodies, an effort at a distance between its two points. At a
    point or a body it is external. The labels are those of `CompiledModel.actuators`, which checks them.
    """

    def __init__(self, model: CompiledModel, labels: tuple[str, ...]) -> None:
        free = model.free_bodies
        self.labels = labels
        # for each label its index among the coordinates of the joints, or -1
        self.coordinate_index = np.array(
            [free.joint_coordinates.index(x) if x in free.joint_coordinates else -1 for x in self.labels],
            dtype=np.intp,
        )
        # efforts at joint coordinates, as loads at all coordinates
        self.on_coordinates = (
            np.arange(len(free.joint_coordinates))[:, None] == self.coordinate_index
        ).astype(float)
        outside = [x for x, k in zip(self.labels, self.coordinate_index, strict=True) if k < 0]
        items: list[Item] = []
        self._picked: list[int] = []
        height = 0
        for label in outside:
            body, _, row = label.partition(".")
            if row == "angle":  # rotation about the normal; in spatial motion it is not a coordinate
                normal = tuple(model.tree.planar_normal)  # type: ignore[arg-type]
                made, picked = [Item(lay.RELATIVE_OMEGA, free.tree.frame[body], -1, extra=normal)], 0
            else:
                rows = make_rows(free.tree, [label])
                made, picked = list(rows.source), 0 if rows.select is None else int(rows.select[0])
            items += made
            self._picked.append(height + picked)
            height += sum(heights(made))
        self._query = output_query(free.tree, plain_rows(free.tree, items), 1) if items else None
        self.scale = np.ones(len(self.labels))
        at_joint = self.coordinate_index >= 0
        self.scale[at_joint] = free.scale_left[self.coordinate_index[at_joint]]
        self.scale[~at_joint] = row_scales(free.tree, items, model.length)[self._picked]

    def first_order(self, free: FreeBodies, places: Places, coordinate_rows: np.ndarray) -> np.ndarray:
        """Return G (B, A, N, 6) of the coordinates, given that of all joint coordinates (B, F, N, 6)."""
        G = np.empty((len(coordinate_rows), len(self.labels), *coordinate_rows.shape[2:]))
        G[:, self.coordinate_index >= 0] = coordinate_rows[
            :, self.coordinate_index[self.coordinate_index >= 0]
        ]
        if self._query is not None:
            G[:, self.coordinate_index < 0] = free.first_order(self._query, places)[:, self._picked]
        return G


@dataclass(frozen=True)
class LoadSolution:
    """Loads at w that give the free bodies the required motion."""

    load: np.ndarray  # (B, n): loads at the rows, of minimum scaled norm
    variations: np.ndarray  # (B, n, k): orthonormal basis of their variations, in scaled loads
    condition: np.ndarray  # (B,): condition of the scaled rows


def solve_loads(rows: np.ndarray, needed: np.ndarray) -> LoadSolution:
    """Return scaled loads x with [rows]ᵀ x = needed, for rows (B, n, N) that span all N motions."""
    count, _, width = rows.shape
    Q, R = np.linalg.qr(rows, mode="complete")
    R = R[:, :width]
    condition = np.linalg.cond(R) if count and width else np.ones(count)
    # larger ones raise later
    R = np.where((condition < DETERMINED_CONDITION_MAX)[:, None, None], R, np.eye(width))
    smallest = np.linalg.solve(np.swapaxes(R, 1, 2), needed[..., None])
    return LoadSolution((Q[..., :width] @ smallest)[..., 0], Q[..., width:], condition)


def prescribe_efforts(
    solution: LoadSolution, efforts: np.ndarray, error: float
) -> tuple[LoadSolution, np.ndarray]:
    """Restrict a solution to given first loads; return it, and the residual of each member.

    `efforts` (B, A) are the first A loads, scaled. `error` is that of the variations, for a condition of
    one.
    """
    of_actuators = solution.variations[:, : efforts.shape[1]]
    U, s, Vt = np.linalg.svd(of_actuators, full_matrices=False)
    # singular values of round-off size count as zero
    is_nonzero = s > np.clip(error * solution.condition, RANK_SHARE, NULL_SPACE_ATOL_MAX)[:, None]
    deviation = efforts - solution.load[:, : efforts.shape[1]]
    components = np.einsum("bir,bi->br", U, deviation) * is_nonzero / np.where(is_nonzero, s, 1.0)
    amount = np.einsum("brk,br->bk", Vt, components)
    load = solution.load + np.einsum("bnk,bk->bn", solution.variations, amount)
    used = Vt * is_nonzero[..., None]
    variations = solution.variations - solution.variations @ np.swapaxes(used, 1, 2) @ used
    residual = np.linalg.norm(deviation - np.einsum("bik,bk->bi", of_actuators, amount), axis=-1)
    return LoadSolution(load, variations, solution.condition), residual


def joint_forces(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    actuators: str | Iterable[str] | None = None,
    split: Split = None,
    effort: Any = None,
    out_of_plane: bool = False,
) -> JointForces:
    """Return forces and moments in all joints for a motion: the constraint loads T_c of (4-31).

    See `Configuration.joint_forces`.
    """
    model, states, ok = configuration._model, configuration.state, configuration._ok
    transfer = model.transfer_for(wrt)
    model.require_real("joint_forces()", "Use efforts of the dynamics, or finite differences.")
    free = model.free_bodies
    if split is not None and (not isinstance(split, str) or split != "minimum norm"):
        raise invalid("criterion", "must be None or 'minimum norm'", split)
    if states.dtype != np.float64:
        message = (
            f"`configuration` must hold real numbers in joint_forces(), got {states.dtype}. Convert its "
            "state."
        )
        raise InputError(message, key="configuration", got=states.dtype)
    labels = transfer.labels
    actuator_rows = Actuators(model, model.actuators(actuators, labels))
    rates_given = {
        name: ordinary(name, real_array(name, np.zeros(len(labels)) if value is None else value, len(labels)))
        for name, value in (("qd", qd), ("qdd", qdd))
    }
    force, loaded = free.loads.applied(applied, model.description.name)
    if force.dtype != np.float64:
        message = f"`applied` must hold real numbers in joint_forces(), got {force.dtype}."
        raise InputError(message, key="applied", got=force.dtype)
    prescribed = np.zeros(0)
    if effort is not None:
        size = len(actuator_rows.labels)
        prescribed = ordinary("effort", real_array("effort", effort, size, finite=False))
    batch = broadcast_batches(
        configuration=states.shape[:-1],
        applied=loaded,
        **{k: v.shape[:-1] for k, v in rates_given.items()},
        effort=prescribed.shape[:-1],
    )
    valid = np.ones(prod(batch), dtype=bool) if ok is None else np.broadcast_to(ok, batch).ravel()
    # efforts without a solution, such as a demand beyond limits, are NaN
    valid = valid & np.broadcast_to(np.isfinite(prescribed).all(axis=-1), batch).ravel()

    def members(a: np.ndarray, rank: int) -> np.ndarray:
        tail = a.shape[a.ndim - rank :]
        return np.ascontiguousarray(np.broadcast_to(a, (*batch, *tail)).reshape(prod(batch), *tail)[valid])

    valid_states = members(states, 1)
    step = max(1, BATCH_ENTRIES_MAX // free.size)
    places = np.flatnonzero(valid)
    with np.errstate(over="ignore", invalid="ignore"), batch_indices(places, batch):  # overflow raises later
        rates = transfer.tree_motion(valid_states, *(members(v, 1) for v in rates_given.values()))
        inputs = [valid_states, *rates, members(force, 2), members(prescribed, 1)]
        chunks = [
            _member_loads(model, actuator_rows, effort is not None, *(a[k : k + step] for a in inputs))
            for k in range(0, max(len(valid_states), 1), step)
        ]
    loads = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
    condition = loads.pop("condition")
    with batch_indices(places, batch):
        if not (condition < DETERMINED_CONDITION_MAX).all():
            _raise_insufficient(model, actuator_rows.labels, valid_states, condition)
        residual = loads.pop("residual")
        if (residual > EFFORT_RTOL).any():
            _raise_inconsistent_efforts(model, actuator_rows.labels, residual)
    # smaller variations are round-off
    loads["variation_atol"] = np.clip(_variation_error(model) * condition, RANK_SHARE, NULL_SPACE_ATOL_MAX)
    results: dict[str, Any] = {}
    for key, chunk in loads.items():
        full = np.full((len(valid), *chunk.shape[1:]), np.nan)
        full[valid] = chunk
        results[key] = full.reshape((*batch, *chunk.shape[1:]))
    normal = model.tree.planar_normal
    shown: tuple[str, ...] = COMPONENTS
    if not flag("out_of_plane", out_of_plane) and normal is not None:
        shown = _keep_plane(results, normal)
    bodies = {joint.name: joint.bodies for joint in free.joints}
    made = JointForces(
        bodies,
        actuator_rows.labels,
        free.ties,
        **results,
        length=model.length,
        split=split,
        contact_check=contact_force_check(model.description._closed_contacts),
    )
    made._description, made._shown, made._source = model.description, shown, (configuration, wrt)
    return made


def _keep_plane(loads: dict[str, np.ndarray], normal: np.ndarray) -> tuple[str, ...]:
    """Keep forces in a plane and moments about its normal where no load acts out of the plane.

    Return the components that are not zero everywhere.

    The others have the minimum norm in `loads`, and are zero unless some load acts on them. Only a preload,
    which rigid bodies do not determine, can then be there.
    """
    across = np.outer(normal, normal)
    plane = np.zeros((6, 6))
    plane[:3, :3], plane[3:, 3:] = np.eye(3) - across, across
    kept = loads["loads"] @ plane
    size = np.abs(loads["loads"]).max(axis=(-2, -1), initial=0.0)
    flat = np.abs(loads["loads"] - kept).max(axis=(-2, -1), initial=0.0) <= OUT_OF_PLANE_RTOL * size
    loads["loads"] = np.where(flat[..., None, None], kept, loads["loads"])
    loads["variations"] = np.where(
        flat[..., None, None, None], plane @ loads["variations"], loads["variations"]
    )
    unsolved = np.isnan(size)
    in_plane = bool((flat | unsolved).all())
    kept_rows = np.array([row.any() or not in_plane for row in plane])
    return tuple(name for name, has in zip(COMPONENTS, kept_rows, strict=True) if has)


def _variation_error(model: CompiledModel) -> float:
    """Return the error of variations, for a condition of one."""
    return max(100 * EPS, model.description.closure_tolerance)


def _member_loads(
    model: CompiledModel,
    actuator_rows: Actuators,
    has_efforts: bool,
    states: np.ndarray,
    phid: np.ndarray,
    phidd: np.ndarray,
    force: np.ndarray,
    prescribed: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return the data of `JointForces` for members whose tree has given rates."""
    free, length = model.free_bodies, model.length
    rates, accelerations = free.motion(states, phid, phidd)
    places = free.places(states)
    twists = free.twists(rates)
    load_on, rate_loads = free.applied(places, force, twists)
    model.check_springs(load_on, None)
    prevented, coordinate_rows = (free.first_order(of, places) for of in (free.prevented, free.left))
    # springs and dampers in the joints have known efforts
    law_efforts = _joint_law_efforts(model, states, np.einsum("bfnc,bnc->bf", coordinate_rows, twists))
    law_efforts -= _rotor_efforts(model, states, phid, phidd)
    inertia = free.inertia(places, rates, accelerations)
    required = inertia - load_on + rate_loads - np.einsum("bfnc,bf->bnc", coordinate_rows, law_efforts)
    ties = free.ties_first_order(places, coordinate_rows)
    rows = np.concatenate([actuator_rows.first_order(free, places, coordinate_rows), ties, prevented], axis=1)
    if not np.isfinite(rows).all():
        raise InputError(
            f"Actuators {', '.join(actuator_rows.labels)} have no direction here: one of their distances is "
            "zero. Name others, or move its points apart.",
            names=actuator_rows.labels,
        )
    check_finite("Inertia forces or loads", model.description.name, required)
    scale = np.concatenate([actuator_rows.scale, free.scale_ties, free.scale])
    scaled, size = rows / scale[:, None, None] * free.column_scale, free.tree.size
    solution = solve_loads(
        scaled.reshape(*rows.shape[:2], size), (required * free.column_scale).reshape(len(states), size)
    )
    magnitudes = np.abs(inertia) + np.abs(load_on) + np.abs(required)
    residual = np.zeros(len(states))
    if has_efforts:
        efforts = prescribed * actuator_rows.scale
        solution, residual = prescribe_efforts(solution, efforts, _variation_error(model))
        # the scale includes all loads of the motion, which may cancel
        magnitude = np.linalg.norm(magnitudes * free.column_scale, axis=(1, 2))
        magnitude += np.linalg.norm(efforts, axis=1)
        residual = residual / np.where(magnitude > 0, magnitude, 1.0)
    # efforts and loads of ties come first; the wrench of a joint, about its point, is the sum of the efforts
    # along its coordinates and of the constraint loads
    count, single = len(actuator_rows.labels), len(actuator_rows.labels) + len(free.ties)
    load, load_variations = solution.load[:, :single] / scale[:single], solution.variations[:, :single]
    on_coordinates = np.concatenate([actuator_rows.on_coordinates, free.on_joint_coordinates], axis=1)
    units = np.array([length] * 3 + [1.0] * 3)
    across = free.wrenches(prevented, free.owner, places) * units / free.scale[:, None]
    along = free.wrenches(coordinate_rows, free.owner_left, places) * units
    efforts_on_coordinates = law_efforts + load @ on_coordinates.T
    variations_on_coordinates = on_coordinates @ (load_variations / scale[:single, None])
    sum_constraints, sum_coordinates = (
        (np.arange(len(free.joints))[:, None] == owner).astype(float)
        for owner in (free.owner, free.owner_left)
    )
    at_contacts = free.owner >= len(model.description.joints)
    contact_load = solution.load[:, single:][:, at_contacts] / free.scale[at_contacts]
    contact_variations = solution.variations[:, single:][:, at_contacts] / free.scale[at_contacts, None]
    return {
        "contact_load": contact_load,
        "contact_variations": contact_variations,
        "load_scale": magnitudes[..., :3].max(axis=(1, 2), initial=0.0),
        "point": places.joints,
        "loads": sum_constraints @ (solution.load[:, single:, None] * across)
        + sum_coordinates @ (efforts_on_coordinates[..., None] * along),
        "variations": _joint_variations(sum_constraints, across, solution.variations[:, single:])
        + _joint_variations(sum_coordinates, along, variations_on_coordinates),
        "effort": load[:, :count],
        "tie_load": load[:, count:],
        "single_variations": load_variations,
        "condition": solution.condition,
        "residual": residual,
    }


def _joint_variations(owned: np.ndarray, wrenches: np.ndarray, variations: np.ndarray) -> np.ndarray:
    """Return variations (B, J, 6, k) of the joints' wrenches, from those of rows (B, R, k)."""
    return np.einsum("jr,brc,brk->bjck", owned, wrenches, variations, optimize=True)


def _joint_law_efforts(model: CompiledModel, states: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return efforts (B, F) of the springs and dampers in the joints, from the rates of all coordinates."""
    free, joints = model.free_bodies, model.description.joints
    stiffness, rest, damping = (
        np.array([x for joint in joints for x in getattr(joint, key)])
        for key in ("stiffness", "rest", "damping")
    )
    values = np.zeros_like(rates)
    for j, joint in enumerate(joints):
        if any(joint.stiffness):  # type: ignore[arg-type]
            # values of the mechanism: those of the tree may differ by full turns
            values[:, free.owner_left == j] = model.values(joint.name, states)
    stretch = np.where(stiffness > 0, values - rest, 0.0)
    return -stiffness * stretch - damping * rates


def _rotor_efforts(
    model: CompiledModel, states: np.ndarray, phid: np.ndarray, phidd: np.ndarray
) -> np.ndarray:
    """Return efforts (B, F) that accelerate the armatures, from the motion of the tree's coordinates."""
    free = model.free_bodies
    efforts = np.zeros((len(states), len(free.joint_coordinates)))
    for j, joint in enumerate(model.description.joints):
        if not any(joint.armature):  # type: ignore[arg-type]
            continue
        if joint.components[0] in model.tree.column:
            acceleration = phidd[:, [model.tree.column[c] for c in joint.components]]
        else:
            query = model.rows(joint.name, 2)
            _, G, H = query.arrays(states)
            bias = np.einsum("bpmn,bm,bn->bp", H, phid, phid)
            acceleration = (np.einsum("bpn,bn->bp", G, phidd) + bias)[:, : joint.dof]
        efforts[:, free.owner_left == j] = np.array(joint.armature) * acceleration
    return efforts


def _raise_inconsistent_efforts(model: CompiledModel, labels: tuple[str, ...], residual: np.ndarray) -> None:
    """Raise an error for prescribed efforts that do not produce the motion."""
    failed = np.flatnonzero(residual > EFFORT_RTOL)
    which = _members(failed, residual)
    message = (
        f"`effort` at {', '.join(labels)} does not produce this motion of '{model.description.name}'{which}: "
        f"the relative residual is {residual.max():.2g}. Use the efforts of distribute() for this motion, or "
        "omit `effort`."
    )
    raise InputError(message, key="effort", residual=float(residual.max()), failed=failed.tolist())


def _members(failed: np.ndarray, of: np.ndarray) -> str:
    """Return the first failed members of a batch as text; '' for a single one."""
    return f" (members {', '.join(map(str, failed[:4]))} of {len(of)})" if len(of) > 1 else ""


def _raise_insufficient(
    model: CompiledModel, labels: tuple[str, ...], states: np.ndarray, condition: np.ndarray
) -> None:
    """Raise an error for actuators and joints that do not hold every motion, or are too ill-conditioned."""
    failed = np.flatnonzero(~(condition < DETERMINED_CONDITION_MAX))
    b = int(failed[0])
    own = model.transfer(())
    scaled = own.values_and_rates(states[b : b + 1])[1] / own.scale[:, None] * own.column_scale
    others = own.admissible_inputs(scaled[0])
    hint = f" Possible here: {'; '.join(others)}." if others else ""
    which = _members(failed, condition)
    message = (
        f"Actuators {', '.join(labels)} cannot hold '{model.description.name}' here{which} (condition "
        f"{condition[b]:.0e}): some motion needs none of their efforts.{hint}"
    )
    raise SingularError(
        message, condition=float(condition[b]), actuators=labels, possible=others, failed=failed.tolist()
    )
