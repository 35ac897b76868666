"""Reactions: forces in all joints, as the loads of (4-31) at coordinates that are held.

With every joint cut, w = (coordinates with actuators, closure rows of all joints) spans the motion of the
free bodies, and what makes them move so is T_φ = [G^w]ᵀ T_w: the efforts, and the constraint loads T_c. Where
joints hold more than once there are more rows than motions; the loads then vary in the null space of [G^w]ᵀ,
and what does not vary with them is determined all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from kic.configuration import Configuration
from kic.dynamics.friction import contact_force_check
from kic.errors import InputError, SingularError, short_repr
from kic.joint_forces.joint_forces import JointForces, Split
from kic.kernels.layout import RELATIVE_OMEGA
from kic.kinematics.items import Item
from kic.kinematics.outputs import make_rows, plain_rows
from kic.kinematics.queries import OutputQuery
from kic.numerics.arguments import names_of
from kic.numerics.arrays import as_array, broadcast_batches, check_finite, ordinary
from kic.transfer.compiled_model import CompiledModel
from kic.transfer.constraint_system import row_scales
from kic.transfer.free_bodies import FreeBodies, Places
from kic.transfer.rank import RANK_SHARE

_EPS = float(np.finfo(float).eps)
# where the null space of the joints is known no better than this, nothing can be called determined
WORST_SHARE = 1e-3
WORST_CONDITION = WORST_SHARE / (100 * _EPS)
# numbers of a matrix of equilibrium that are in work at the same time
AT_ONCE = 2**22
# efforts that were chosen must make the motion to this share of what it takes; the rest is put right
CHOSEN = 1e-6


class Actuators:
    """Coordinates at which efforts act, as rows of the free bodies.

    An effort at a joint acts between its bodies, at a distance between its two points; at a point or a body
    it comes from outside.

    Parameters
    ----------
    model : Model
        The mechanism.
    names : tuple of str
        Joints, points, bodies, distances, or single rows of them.

    Raises
    ------
    UnknownNameError, InputError
        For a name that is not there or stands twice, a part without rows, or fewer rows than freedoms.
    """

    def __init__(self, model: CompiledModel, names: tuple[str, ...]) -> None:
        free = model.free_bodies
        self.labels = model.actuators(names)
        # for each label its place among the freedoms of the joints, or -1
        self.freedom = np.array(
            [free.freedoms.index(x) if x in free.freedoms else -1 for x in self.labels], dtype=np.intp
        )
        # an effort there is a load at the joint's freedom
        self.on_freedoms = (np.arange(len(free.freedoms))[:, None] == self.freedom).astype(float)
        outside = [x for x, k in zip(self.labels, self.freedom, strict=True) if k < 0]
        items: list[Item] = []
        self._picked: list[int] = []
        height = 0
        for label in outside:
            body, _, row = label.partition(".")
            if row == "angle":  # turning about the normal, which in space is no coordinate
                normal = tuple(model.tree.planar_normal)  # type: ignore[arg-type]
                made, picked = [Item(RELATIVE_OMEGA, free.tree.frame[body], -1, extra=normal)], 0
            else:
                rows = make_rows(free.tree, [label])
                made, picked = list(rows.source), 0 if rows.select is None else int(rows.select[0])
            items += made
            self._picked.append(height + picked)
            height += sum(item.height for item in made)
        self._question = OutputQuery(free.tree, plain_rows(free.tree, items), 1) if items else None
        self.scale = np.ones(len(self.labels))
        self.scale[self.freedom >= 0] = free.scale_left[self.freedom[self.freedom >= 0]]
        self.scale[self.freedom < 0] = row_scales(free.tree, items, model.length)[self._picked]

    def first_order(self, free: FreeBodies, places: Places, left: np.ndarray) -> np.ndarray:
        """G (B, A, N, 6) of the coordinates, given that of all joints' freedoms (B, F, N, 6)."""
        G = np.empty((len(left), len(self.labels), *left.shape[2:]))
        G[:, self.freedom >= 0] = left[:, self.freedom[self.freedom >= 0]]
        if self._question is not None:
            G[:, self.freedom < 0] = free.first_order(self._question, places)[:, self._picked]
        return G


@dataclass(frozen=True)
class Held:
    """Loads at w that move the free bodies as asked.

    Attributes
    ----------
    load : (B, n)
        Loads at the rows, the smallest by their scaled norm.
    play : (B, n, k)
        How they may vary: orthonormal in scaled loads.
    condition : (B,)
        Condition of the scaled rows.
    """

    load: np.ndarray
    play: np.ndarray
    condition: np.ndarray


def hold(rows: np.ndarray, needed: np.ndarray) -> Held:
    """Scaled loads x with [rows]ᵀ x = needed, from rows (B, n, N) that span all N motions."""
    count, _, width = rows.shape
    Q, R = np.linalg.qr(rows, mode="complete")
    R = R[:, :width]
    condition = np.linalg.cond(R) if count and width else np.ones(count)
    R = np.where((condition < WORST_CONDITION)[:, None, None], R, np.eye(width))  # others are refused
    smallest = np.linalg.solve(np.swapaxes(R, 1, 2), needed[..., None])
    return Held((Q[..., :width] @ smallest)[..., 0], Q[..., width:], condition)


def chosen(held: Held, efforts: np.ndarray, error: float) -> tuple[Held, np.ndarray]:
    """Loads of which the first are given, and what is left to those (B, n) by no variation.

    Parameters
    ----------
    held : Held
        All loads that move the bodies as asked.
    efforts : (B, A)
        The first A of them, scaled as they are.
    error : float
        Of the play, for a condition of one.
    """
    acting = held.play[:, : efforts.shape[1]]
    U, s, Vt = np.linalg.svd(acting, full_matrices=False)
    # play of the actuators that can not be told from none is none
    there = s > np.clip(error * held.condition, RANK_SHARE, WORST_SHARE)[:, None]
    missed = efforts - held.load[:, : efforts.shape[1]]
    along = np.einsum("bir,bi->br", U, missed) * there / np.where(there, s, 1.0)
    amount = np.einsum("brk,br->bk", Vt, along)
    load = held.load + np.einsum("bnk,bk->bn", held.play, amount)
    taken = Vt * there[..., None]
    play = held.play - held.play @ np.swapaxes(taken, 1, 2) @ taken
    left = np.linalg.norm(missed - np.einsum("bik,bk->bi", acting, amount), axis=-1)
    return Held(load, play, held.condition), left


def joint_forces(
    configuration: Configuration,
    qd: Any = None,
    qdd: Any = None,
    wrt: str | Iterable[str] | None = None,
    applied: dict[str, Any] | None = None,
    actuators: str | Iterable[str] | None = None,
    split: Split = None,
    effort: Any = None,
) -> JointForces:
    """Return forces and moments in all joints for a motion.

    See `Configuration.joint_forces`.
    """
    model, states, ok = configuration._model, configuration.state, configuration._ok
    motion = {"qd": qd, "qdd": qdd}
    transfer = model.transfer_for(wrt)
    model.require_real("joint_forces()", "Ask for efforts of the dynamics, or take differences.")
    free = model.free_bodies
    if split is not None and (not isinstance(split, str) or split != "minimum norm"):
        raise InputError(f"`split` must be None or 'minimum norm', got {short_repr(split)}.", name="split")
    if states.dtype != np.float64:
        raise InputError(f"joint_forces() needs real numbers; this posture holds {states.dtype}.")
    labels = transfer.labels
    acting = Actuators(model, labels if actuators is None else names_of(actuators, "actuators"))
    given = {k: _real(k, np.zeros(len(labels)) if v is None else v, len(labels)) for k, v in motion.items()}
    force, loaded = free.loads.applied(applied, model.description.name)
    if force.dtype != np.float64:
        raise InputError(f"joint_forces() needs real numbers; `applied` holds {force.dtype}.")
    wanted = np.zeros(0) if effort is None else _real("effort", effort, len(acting.labels), finite=False)
    batch = broadcast_batches(
        posture=states.shape[:-1],
        applied=loaded,
        **{k: v.shape[:-1] for k, v in given.items()},
        effort=wanted.shape[:-1],
    )
    good = np.ones(prod(batch), dtype=bool) if ok is None else np.broadcast_to(ok, batch).ravel()
    # what had no answer, such as a demand beyond the limits, has none here
    good = good & np.broadcast_to(np.isfinite(wanted).all(axis=-1), batch).ravel()

    def members(a: np.ndarray, rank: int) -> np.ndarray:
        tail = a.shape[a.ndim - rank :]
        return np.ascontiguousarray(np.broadcast_to(a, (*batch, *tail)).reshape(prod(batch), *tail)[good])

    at = members(states, 1)
    step = max(1, AT_ONCE // free.size)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is an error
        rates = transfer.tree_motion(at, *(members(v, 1) for v in given.values()))
        known = [at, *rates, members(force, 2), members(wanted, 1)]
        parts = [
            _answer(model, acting, effort is not None, *(a[k : k + step] for a in known))
            for k in range(0, max(len(at), 1), step)
        ]
    answer = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    condition = answer.pop("condition")
    if not (condition < WORST_CONDITION).all():
        _refuse(model, acting.labels, at, condition)
    missed = answer.pop("missed")
    if (missed > CHOSEN).any():
        _refuse_efforts(model, acting.labels, missed)
    # a variation smaller than this can not be told from none
    answer["share"] = np.clip(_error(model) * condition, RANK_SHARE, WORST_SHARE)
    whole: dict[str, Any] = {}
    for key, part in answer.items():
        full = np.full((len(good), *part.shape[1:]), np.nan)
        full[good] = part
        whole[key] = full.reshape((*batch, *part.shape[1:]))
    bodies = {joint.name: joint.bodies for joint in free.joints}
    return JointForces(
        bodies,
        acting.labels,
        free.ties,
        **whole,
        length=model.length,
        split=split,
        pressing=contact_force_check(model.description.closed_contacts),
    )


def _error(model: CompiledModel) -> float:
    """Of variations, for a condition of one."""
    return max(100 * _EPS, model.description.closure_tolerance)


def _real(name: str, value: Any, size: int, finite: bool = True) -> np.ndarray:
    """Real numbers (..., size)."""
    a = as_array(name, value, size, finite=finite)
    if a.dtype != np.float64:
        raise InputError(f"joint_forces() needs real numbers; `{name}` holds {a.dtype}.")
    return ordinary(name, a)


def _answer(
    model: CompiledModel,
    acting: Actuators,
    given_efforts: bool,
    states: np.ndarray,
    phid: np.ndarray,
    phidd: np.ndarray,
    force: np.ndarray,
    wanted: np.ndarray,
) -> dict[str, np.ndarray]:
    """What `JointForces` holds, for a list of members whose tree moves with these rates."""
    free, length = model.free_bodies, model.length
    rates, accelerations = free.motion(states, phid, phidd)
    places = free.places(states)
    twists = free.twists(rates)
    load_on, drag = free.applied(places, force, twists)
    model.check_springs(load_on, None)
    prevented, left = (free.first_order(of, places) for of in (free.prevented, free.left))
    # springs and dampers in the joints are efforts that are known
    known = _laws(model, states, np.einsum("bfnc,bnc->bf", left, twists))
    inertia = free.inertia(places, rates, accelerations)
    needed = inertia - load_on + drag - np.einsum("bfnc,bf->bnc", left, known)
    ties = free.ties_first_order(places, left)
    rows = np.concatenate([acting.first_order(free, places, left), ties, prevented], axis=1)
    if not np.isfinite(rows).all():
        raise InputError(
            f"Actuators {', '.join(acting.labels)} have no direction here: a distance of them is zero. Name "
            "others, or move its points apart."
        )
    check_finite("Inertia forces or loads", model.description.name, needed)
    scale = np.concatenate([acting.scale, free.scale_ties, free.scale])
    scaled, size = rows / scale[:, None, None] * free.column_scale, free.tree.size
    held = hold(
        scaled.reshape(*rows.shape[:2], size), (needed * free.column_scale).reshape(len(states), size)
    )
    missed = np.zeros(len(states))
    if given_efforts:
        efforts = wanted * acting.scale
        held, missed = chosen(held, efforts, _error(model))
        # the parts of what the motion takes, which may cancel
        parts = (np.abs(inertia) + np.abs(load_on) + np.abs(needed)) * free.column_scale
        whole = np.linalg.norm(parts, axis=(1, 2)) + np.linalg.norm(efforts, axis=1)
        missed = missed / np.where(whole > 0, whole, 1.0)
    # efforts and loads of ties first; those in a joint are what it is given along its freedoms, while across
    # them it gives what it holds, about its point
    count, single = len(acting.labels), len(acting.labels) + len(free.ties)
    load, load_play = held.load[:, :single] / scale[:single], held.play[:, :single]
    on_freedoms = np.concatenate([acting.on_freedoms, free.on_freedoms], axis=1)
    units = np.array([length] * 3 + [1.0] * 3)
    across = free.wrenches(prevented, free.owner, places) * units / free.scale[:, None]
    along = free.wrenches(left, free.owner_left, places) * units
    given = known + load @ on_freedoms.T
    given_play = on_freedoms @ (load_play / scale[:single, None])
    held_sum, given_sum = (
        (np.arange(len(free.joints))[:, None] == owner).astype(float)
        for owner in (free.owner, free.owner_left)
    )
    touching = free.owner >= len(model.description.joints)
    pushed = held.load[:, single:][:, touching] / free.scale[touching]
    pushed_play = held.play[:, single:][:, touching] / free.scale[touching, None]
    return {
        "touch": pushed,
        "touch_play": pushed_play,
        "size": (np.abs(inertia) + np.abs(load_on) + np.abs(needed))[..., :3].max(axis=(1, 2), initial=0.0),
        "point": places.joints,
        "loads": held_sum @ (held.load[:, single:, None] * across) + given_sum @ (given[..., None] * along),
        "play": _spread(held_sum, across, held.play[:, single:]) + _spread(given_sum, along, given_play),
        "effort": load[:, :count],
        "tie_load": load[:, count:],
        "single_play": load_play,
        "condition": held.condition,
        "missed": missed,
    }


def _spread(owned: np.ndarray, wrenches: np.ndarray, play: np.ndarray) -> np.ndarray:
    """Variations (B, J, 6, k) of the joints' wrenches, from those of rows (B, R, k)."""
    return np.einsum("jr,brc,brk->bjck", owned, wrenches, play, optimize=True)


def _laws(model: CompiledModel, states: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Efforts (B, F) of the springs and dampers in the joints, from the rates of all their coordinates."""
    free, joints = model.free_bodies, model.description.joints
    stiffness, rest, damping = (
        np.array([x for joint in joints for x in getattr(joint, key)])
        for key in ("stiffness", "rest", "damping")
    )
    values = np.zeros_like(rates)
    for j, joint in enumerate(joints):
        if any(joint.stiffness):  # type: ignore[arg-type]
            # from the mechanism itself: what the tree keeps may have turned more than once
            values[:, free.owner_left == j] = model.values(joint.name, states)
    stretch = np.where(stiffness > 0, values - rest, 0.0)
    return -stiffness * stretch - damping * rates


def _refuse_efforts(model: CompiledModel, labels: tuple[str, ...], missed: np.ndarray) -> None:
    """Efforts that were given do not make the motion."""
    failed = np.flatnonzero(missed > CHOSEN)
    which = f" (members {', '.join(map(str, failed[:4]))} of {len(missed)})" if len(missed) > 1 else ""
    raise InputError(
        f"The efforts in `effort` at {', '.join(labels)} do not make '{model.description.name}' move so{which}: "
        f"they miss what the motion takes by {missed.max():.2g} of it. Give those that distribute() finds "
        "for the effort of this motion, or leave `effort` out.",
        missed=float(missed.max()),
        failed=failed.tolist(),
    )


def _refuse(model: CompiledModel, labels: tuple[str, ...], states: np.ndarray, condition: np.ndarray) -> None:
    """These actuators and joints do not hold every motion, or so badly that nothing can be told."""
    failed = np.flatnonzero(~(condition < WORST_CONDITION))
    b = int(failed[0])
    own = model.transfer(())
    scaled = own.values_and_rates(states[b : b + 1])[1] / own.scale[:, None] * own.column_scale
    others = own.admissible_inputs(scaled[0])
    hint = f" Possible here: {'; '.join(others)}." if others else ""
    which = f" (members {', '.join(map(str, failed[:4]))} of {len(condition)})" if len(condition) > 1 else ""
    raise SingularError(
        f"Actuators {', '.join(labels)} cannot hold '{model.description.name}' here{which} (condition "
        f"{condition[b]:.0e}): some motion takes no effort of theirs.{hint}",
        condition=float(condition[b]),
        actuators=labels,
        possible=others,
        failed=failed.tolist(),
    )
