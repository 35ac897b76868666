"""Reactions: joint forces, computed as the loads of (4-31) at coordinates that are held.

With every joint cut, w = (coordinates with actuators, closure rows of all joints) spans the motion of the
free bodies. The loads on the bodies are T_φ = [G^w]ᵀ T_w, where T_w has the efforts and the constraint loads
T_c. An overconstrained mechanism has more rows than motions. Its loads vary in the null space of [G^w]ᵀ;
components that do not vary are determined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np

from kic.analysis.joint_forces.joint_forces import JointForces
from kic.description.validation import GROUND
from kic.errors import InputError, KicError, SingularError, invalid
from kic.kinematics.items import Between, Item, heights
from kic.kinematics.outputs import WRENCH_LABELS, make_rows, plain_rows
from kic.kinematics.queries import output_query
from kic.mechanism.configuration import Configuration, flat_motion, flat_states, model_of
from kic.numerics.arguments import by_name, flag, names_of
from kic.numerics.arrays import check_finite, ordinary, real_array
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

    An effort at a joint acts between its bodies, an effort at a distance between its two points. An effort at
    a point or a body is external. Labels must come from `CompiledModel.actuators`.
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
                normal = model.tree.planar_normal
                made, picked = [Between(free.tree, (GROUND, body)).rate(normal)], 0  # type: ignore[arg-type]
            else:
                rows = make_rows(free.tree, (label,))
                made, picked = list(rows.source), 0 if rows.select is None else int(rows.select[0])
            items += made
            self._picked.append(height + picked)
            height += sum(heights(made))
        self._query = output_query(free.tree, plain_rows(free.tree, items), 1) if items else None
        self.scale = np.ones(len(self.labels))
        at_joint = self.coordinate_index >= 0
        self.scale[at_joint] = free.scale_left[self.coordinate_index[at_joint]]
        if self._query is not None:
            self.scale[~at_joint] = row_scales(free.tree, self._query.layout.rows, model.length)[self._picked]

    def first_order(self, free: FreeBodies, places: Places, coordinate_rows: np.ndarray) -> np.ndarray:
        """Return G (B, A, N, 6) of the coordinates from G (B, F, N, 6) of all joint coordinates."""
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
    """Restrict a solution to prescribed first loads; return it and the residual of each member.

    `efforts` (B, A) are the first A loads, scaled. `error` is the error of the variations for a condition
    number of one.
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
    effort: Any = None,
    *,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    actuators: str | Iterable[str] | None = None,
    criterion: Literal["minimum norm"] | None = None,
    out_of_plane: bool = False,
) -> JointForces:
    """Compute the forces and moments in all joints for a motion, and the efforts that drive it.

    Every joint is cut and replaced by its loads, as in (4-31): T_c at the conditions that the joint
    imposes, T at the coordinates with actuators. A coupling acts as efforts in its joints, a fixed
    distance as a force between its points, and a closed contact as a joint. Joints are frictionless.
    Bodies are rigid: if they are overconstrained, equilibrium does not determine some components. Those
    are NaN and are named; all remaining components are exact. An example is Table C-1.

    Parameters
    ----------
    qd, qdd : (..., M) array_like, optional
        Rates and accelerations of the coordinates; zero by default.
    effort : (..., A) array_like, or dict of str to (...) array_like, optional
        Efforts of the actuators, for example from `distribute` or `Grasp.motion`; NaN if a member has
        none. They must drive the motion; a residual of at most 1e-6 is corrected. A dict gives them by
        name, zero for the others; without `actuators`, its names are the actuators.
    wrt : str or list of str, optional
        Coordinates of the motion, as in `coefficients`; by default the mechanism's own.
    applied : dict of str to (..., 3) array_like, optional
        Components of named forces and moments, each in its axes (world or body), instead of those of the
        model.
    actuators : str or list of str, optional
        Rows where efforts act; by default the actuators of the mechanism, or else the coordinates. An
        effort at a joint acts between its two bodies, an effort at a distance between its two points. An
        effort at a row of a point or of a body is an external force or moment. There may be more
        actuators than degrees of freedom.
    criterion : {None, "minimum norm"}
        Choice of undetermined components: none, or those that minimize the sum of (force · L)² + moment²
        over all joints, and over the actuators if they are redundant. Moments are about the points of the
        joints, and L is the largest extent of the reference configuration. A coupling counts with the
        largest of its efforts.
    out_of_plane : bool
        True to include forces out of the plane of a planar mechanism and moments in it. Rigid bodies do
        not determine them. By default they are 0 where no load acts on them, so that each joint has two
        forces and a moment.

    Returns
    -------
    JointForces
        ``f["C"].force`` and ``f["C"].moment`` (..., 3) of the first body of the joint on the second, in
        world axes; ``f.effort`` (..., A), ``f.undetermined``.

    Raises
    ------
    InertiaError
        If a body has no inertia although it moves, or no mass.
    InputError
        If a shape or type is wrong, there are fewer actuators than degrees of freedom, or `effort` does
        not drive the motion.
    SingularError
        If the coordinates cannot drive the mechanism here, or the actuators cannot hold it.

    Examples
    --------
    >>> f = kic.load("five-bar").at().joint_forces([2.0, 3.0], [1.0, 0.5])
    >>> f["B"].force.round(4), f.effort.round(4)  # Table C-1
    (array([...,  0.    ]), array([ 0.0504, -0.8259]))
    """
    model = model_of(configuration)
    transfer = model.transfer_for(wrt)
    model.require_real("joint_forces()", "Use efforts of the dynamics, or finite differences.")
    free, labels = model.free_bodies, transfer.labels
    if criterion is not None and (not isinstance(criterion, str) or criterion != "minimum norm"):
        raise invalid("criterion", "must be None or 'minimum norm'", criterion)
    if actuators is None and isinstance(effort, Mapping):
        actuators = tuple(effort)
    given_rows = (
        actuators if actuators is None or isinstance(actuators, str) else names_of(actuators, "actuators")
    )
    acting = model.prepared(
        (Actuators, given_rows, labels), lambda: Actuators(model, model.actuators(given_rows, labels))
    )
    prescribed: np.ndarray = np.zeros(0)
    batches: dict[str, Any] = {}
    if effort is not None:
        effort = by_name("effort", effort, acting.labels)
        prescribed = ordinary("effort", real_array("effort", effort, len(acting.labels), finite=False))
        batches["effort"] = prescribed.shape[:-1]
    rates = {"qd": qd, "qdd": qdd}
    states, along, force, given = flat_motion(configuration, transfer, rates, applied, free.loads, **batches)
    if states.dtype != np.float64:
        _raise_not_real(configuration, rates, len(labels), states.dtype)
    batch, ok = given["batch"], given["ok"]
    valid = np.ones(len(states), dtype=bool) if ok is None else ok.ravel()
    size = prescribed.shape[-1]
    prescribed = np.broadcast_to(prescribed, (*batch, size)).reshape(len(states), size)
    # efforts without a solution, such as a demand beyond limits, are NaN
    valid = valid & np.isfinite(prescribed).all(axis=1)
    force = free.loads.constant[None] if force is None else force
    force = np.broadcast_to(force, (len(states), *force.shape[1:]))
    places, step = np.flatnonzero(valid), max(1, BATCH_ENTRIES_MAX // free.size)
    states, *motion = [a[places] for a in (states, *along)]
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # overflow raises later
            series = transfer.tree_motion(states, *motion)
            inputs = [states, *series, force[places], prescribed[places]]
            chunks = [
                _member_loads(model, acting, *[a[k : k + step] for a in inputs])
                for k in range(0, max(len(states), 1), step)
            ]
        loads = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
        condition, residual = loads.pop("condition"), loads.pop("residual")
        if not (condition < DETERMINED_CONDITION_MAX).all():
            _raise_insufficient(model, acting.labels, states, condition)
        if (residual > EFFORT_RTOL).any():
            _raise_inconsistent_efforts(model, acting.labels, residual)
    except KicError as error:
        error.place(places, batch)
        raise
    # smaller variations are round-off
    loads["variation_atol"] = np.clip(_variation_error(model) * condition, RANK_SHARE, NULL_SPACE_ATOL_MAX)
    results: dict[str, Any] = {}
    for key, chunk in loads.items():
        full = np.full((len(valid), *chunk.shape[1:]), np.nan)
        full[places] = chunk
        results[key] = full.reshape((*batch, *chunk.shape[1:]))
    normal = model.tree.planar_normal
    shown: tuple[str, ...] = WRENCH_LABELS
    if normal is not None and (out_of_plane is False or not flag("out_of_plane", out_of_plane)):
        shown = _keep_plane(results, normal)
    made = JointForces(
        {joint.name: joint.bodies for joint in free.joints},
        acting.labels,
        free.ties,
        **results,
        length=model.length,
        split=criterion,
        contact_check=free.contact_check,
    )
    made._description, made._shown, made._source = model.description, shown, (configuration, wrt)
    return made


def _raise_not_real(
    configuration: Configuration, rates: dict[str, Any], size: int, got: np.dtype
) -> NoReturn:
    """Raise the error for complex numbers or symbols in the configuration, a motion or forces."""
    for name, value in rates.items():
        if value is not None:
            real_array(name, value, size)
    key = "applied" if flat_states(configuration).dtype == np.float64 else "configuration"
    message = f"`{key}` must hold real numbers in joint_forces(), got {got}. Convert its numbers."
    raise InputError(message, key=key, got=got)


def _keep_plane(loads: dict[str, np.ndarray], normal: np.ndarray) -> tuple[str, ...]:
    """Keep only forces in the plane and moments about its normal where no load acts out of the plane.

    Return the components that are not zero everywhere. Out-of-plane components of `loads` have minimum norm,
    so they are zero unless some load causes them. Otherwise they could only be a preload, which rigid bodies
    do not determine.
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
    return tuple(np.compress(plane.any(axis=1) | (not in_plane), WRENCH_LABELS).tolist())


def _variation_error(model: CompiledModel) -> float:
    """Return the error of variations for a condition number of one."""
    return max(100 * EPS, model.description.closure_tolerance)


def _member_loads(
    model: CompiledModel,
    actuator_rows: Actuators,
    states: np.ndarray,
    phid: np.ndarray,
    phidd: np.ndarray,
    force: np.ndarray,
    prescribed: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return the data of `JointForces` for members with given states and rates of the tree."""
    free, length = model.free_bodies, model.length
    twists, rates, lumps = free.motion(states, phid, phidd)
    places = free.places(states)
    load_on, rate_loads = free.applied(places, force, twists)
    model.check_springs(load_on, None)
    prevented, coordinate_rows, ties = free.joint_rows(places)
    # springs, dampers and rotors in the joints have known efforts
    law_efforts = _law_efforts(model, states, np.einsum("bfnc,bnc->bf", coordinate_rows, twists), phid, phidd)
    inertia = free.inertia(places, twists, rates, lumps)
    required = inertia - load_on + rate_loads - np.einsum("bfnc,bf->bnc", coordinate_rows, law_efforts)
    rows = np.concatenate([actuator_rows.first_order(free, places, coordinate_rows), ties, prevented], axis=1)
    if not np.isfinite(rows).all():
        raise InputError(
            f"Actuators {', '.join(actuator_rows.labels)} have no direction here: one of their distances is "
            "zero. Name others, or move its points apart.",
            names=actuator_rows.labels,
        )
    if not np.isfinite(required).all():
        check_finite("Inertia forces or loads", model.description.name, required)
    scale = np.concatenate([actuator_rows.scale, free.scale_ties, free.scale])
    scaled, size = rows / scale[:, None, None] * free.column_scale, free.tree.size
    solution = solve_loads(
        scaled.reshape(*rows.shape[:2], size), (required * free.column_scale).reshape(len(states), size)
    )
    magnitudes = np.abs(inertia) + np.abs(load_on) + np.abs(required)
    residual = np.zeros(len(states))
    if prescribed.size:
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
    at_contacts = free.owner >= len(model.description.joints)
    contact_load = solution.load[:, single:][:, at_contacts] / free.scale[at_contacts]
    contact_variations = solution.variations[:, single:][:, at_contacts] / free.scale[at_contacts, None]
    return {
        "contact_load": contact_load,
        "contact_variations": contact_variations,
        "load_scale": magnitudes[..., :3].max(axis=(1, 2), initial=0.0),
        "point": places.joints,
        "loads": free.sums @ (solution.load[:, single:, None] * across)
        + free.sums_left @ (efforts_on_coordinates[..., None] * along),
        "variations": _joint_variations(free.sums, across, solution.variations[:, single:])
        + _joint_variations(free.sums_left, along, variations_on_coordinates),
        "effort": load[:, :count],
        "tie_load": load[:, count:],
        "single_variations": load_variations,
        "condition": solution.condition,
        "residual": residual,
    }


def _joint_variations(owned: np.ndarray, wrenches: np.ndarray, variations: np.ndarray) -> np.ndarray:
    """Return variations (B, J, 6, k) of the joints' wrenches, from those of rows (B, R, k)."""
    return np.einsum("jr,brc,brk->bjck", owned, wrenches, variations, optimize=True)


def _law_efforts(
    model: CompiledModel, states: np.ndarray, rates: np.ndarray, phid: np.ndarray, phidd: np.ndarray
) -> np.ndarray:
    """Return efforts (B, F) of the springs, dampers and rotors in the joints.

    `rates` (B, F) belong to all joint coordinates, rates `phid` and accelerations `phidd` to the tree.
    """
    free, column = model.free_bodies, model.tree.column
    values, accelerations = np.zeros_like(rates), np.zeros_like(rates)
    for j, joint in enumerate(model.description.joints):
        own = free.owner_left == j
        if free.stiffness[own].any():
            # values of the mechanism: those of the tree may differ by full turns
            values[:, own] = model.values(joint.name, states)
        if not free.armature[own].any():
            continue
        if joint.components[0] in column:
            accelerations[:, own] = phidd[:, [column[c] for c in joint.components]]
        else:
            _, G, H = model.rows(joint.name, 2).arrays(states)
            bias = np.einsum("bpmn,bm,bn->bp", H, phid, phid)
            accelerations[:, own] = (np.einsum("bpn,bn->bp", G, phidd) + bias)[:, : joint.dof]
    stretch = np.where(free.stiffness > 0, values - free.rest, 0.0)
    return -free.stiffness * stretch - free.damping * rates - free.armature * accelerations


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
        f"{condition[b]:.0e}): they do no work in some motion.{hint}"
    )
    raise SingularError(
        message, condition=float(condition[b]), actuators=labels, possible=others, failed=failed.tolist()
    )
