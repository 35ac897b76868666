"""Free bodies: the mechanism with every joint cut, and each joint represented by its loads only.

A free joint connects each body to ground. The rates of its six coordinates are the velocity of its centre and
its angular velocity, in world axes; generalized loads are then the forces and moments on the bodies. Closure
rows of the joints describe the motions that these prevent, and rows of joint coordinates the free motions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kic.description.contacts import Contact
from kic.description.description import MechanismDescription
from kic.description.parts import Body, Joint
from kic.description.validation import GROUND
from kic.dynamics.friction import contact_force_check
from kic.dynamics.mass_and_load_tables import pack_loads, pack_masses
from kic.dynamics.queries import dynamics_query
from kic.errors import InertiaError
from kic.kernels import layout as lay
from kic.kinematics.closure_rows import closure_items, contact_items, cut_joint_part, fixed_rows
from kic.kinematics.items import Between, Item, directions_on, heights
from kic.kinematics.outputs import plain_rows
from kic.kinematics.queries import Query, output_query
from kic.kinematics.tree import Tree, ball_axes
from kic.numerics.rotations import quaternion_from_matrix
from kic.transfer.constraint_system import column_scales, row_scales
from kic.transfer.program import LAYOUT


@dataclass(frozen=True)
class Places:
    """Positions of bodies, joints and point masses, for B configurations.

    Attributes
    ----------
    states : (B, S)
        States of the tree of free bodies.
    origin, turned : (B, N, 3), (B, N, 3, 3)
        Centres of the bodies, and their rotations from the reference configuration.
    joints : (B, J, 3)
        Points of the joints, fixed in their second bodies, and of contacts, fixed in their first bodies.
    lumps : (B, L, 3)
        Positions of the point masses.
    """

    states: np.ndarray
    origin: np.ndarray
    turned: np.ndarray
    joints: np.ndarray
    lumps: np.ndarray


def spot(body: Body) -> tuple[float, float, float]:
    """Return the reference position of a body's free joint: its centre of mass, or else its point `at`."""
    return body.com or body.at or (0.0, 0.0, 0.0)


def cut_everywhere(drawing: MechanismDescription) -> MechanismDescription:
    """Return a description with a free joint for each body in the spanning tree, and all other joints cut.

    Couplings are omitted, distances and angles may change, and contacts are open.
    """
    names: list[str] = []
    for body in drawing.bodies:
        name = f"free {body.name}"
        while name in drawing._parts:
            name += "'"
        names.append(name)
    free = [
        Joint(name, "free", (GROUND, body.name), at=spot(body))
        for name, body in zip(names, drawing.bodies, strict=True)
    ]
    distances = tuple(replace(distance, fixed=False) for distance in drawing.distances)
    angles = tuple(replace(angle, fixed=False) for angle in drawing.angles)
    apart = tuple(replace(contact, closed=False) for contact in drawing.contacts)
    joints = (*free, *drawing.joints)
    loose: dict[str, Any] = {"couplings": (), "distances": distances, "angles": angles, "contacts": apart}
    return replace(drawing, joints=joints, coordinates=tuple(names), **loose)


def with_still_bodies(chain: Tree) -> MechanismDescription:
    """Return the description with zero inertia for fixed bodies without inertia; they must have a mass."""
    drawing = chain.description
    still = [body.name for body in drawing.bodies if chain.frame[body.name] < 0]
    bare = [body.name for body in drawing.bodies if body.name in still and body.mass is None]
    if bare:
        raise InertiaError(
            f"Joint forces of '{drawing.name}' require the mass of fixed bodies too, for their weight; "
            f"missing: {', '.join(bare)}. Use mass = 0 for a massless body.",
            bodies=tuple(bare),
        )
    bodies = [
        replace(b, inertia=((0.0,) * 3,) * 3) if b.name in still and b.inertia is None else b
        for b in drawing.bodies
    ]
    return replace(drawing, bodies=tuple(bodies))


def joint_motion_items(tree: Tree, joint: Joint) -> list[Item]:
    """Return rows of the rates of the coordinates of a cut joint, one for each coordinate."""
    if joint.type != "free":
        return cut_joint_part(tree, joint).items[: joint.dof] if joint.dof else []
    # a free joint closes no loop, and is cut only here
    between, axes = Between(tree, joint.bodies, joint.at), ball_axes(joint).T
    return [*map(between.distance_along, axes), *map(between.rate, axes)]


class FreeBodies:
    """Free bodies of a mechanism, with the motions that its joints prevent and allow.

    Parameters
    ----------
    chain : Tree
        Spanning tree of the mechanism, which determines the motion of the bodies.
    length : float
        Characteristic length of the mechanism.

    Attributes
    ----------
    size : int
        Size of the largest table for one configuration.
    tree : Tree
        Tree in which each body is connected to ground by a free joint; all joints of the mechanism are cut.
    joints : tuple of Joint and Contact
        Joints in the order of the description, then closed contacts, as joints without coordinates.
    loads : Loads
        Forces, moments and springs on the free bodies.
    `joint_coordinates` : tuple of str
        Names of the coordinates of all joints.
    scale, scale_left : (R,), (F,)
        Scales by which the R closure rows of all joints and the F rates of their coordinates are divided.
    owner, owner_left : (R,), (F,) int
        Index in `joints` of the joint of each row.
    sums, sums_left : (J, R), (J, F)
        1 if a row belongs to a joint, else 0.
    stiffness, rest, damping, armature : (F,)
        Parameters of springs, dampers and rotors at the joint coordinates.
    contact_check : ContactForceCheck
        Check of the closed contacts.
    ties : tuple of str
        Names of the K couplings, fixed distances and fixed angles.
    on_joint_coordinates : (F, K)
        Effort at each joint coordinate for a unit load of each coupling: its coefficients; 0 for measures.
    scale_ties : (K,)
        Scales by which the rows of `ties` are divided.
    column_scale : (N, 6)
        Scales by which the coordinates of the bodies are multiplied.
    """

    def __init__(self, chain: Tree, length: float) -> None:
        drawing = with_still_bodies(chain)
        self.chain = chain
        self.tree = Tree(cut_everywhere(drawing))
        self.loads = pack_loads(self.tree)
        self.loading = dynamics_query(self.tree, pack_masses(self.tree), self.loads, lay.WANT_LOADS)
        self._make_bodies(drawing)
        self._make_joints(drawing, length)
        self.size = max((len(self.owner) + len(self.ties)) * self.tree.size, self._rows.layout.width)

    def _make_bodies(self, drawing: MechanismDescription) -> None:
        bodies = drawing.bodies
        self._number = {body.name: i for i, body in enumerate(bodies)}
        self._drawn = np.array([spot(body) for body in bodies])
        self._mass = np.array([body.mass for body in bodies], dtype=float)
        zero = np.zeros((3, 3))
        self._inertia = np.array([zero if body.inertia is None else body.inertia for body in bodies])
        lumps = [point for point in drawing.points if point.mass and point.body != GROUND]
        self._lump_mass = np.array([point.mass for point in lumps])
        self._lump_body = np.array([self._number[point.body] for point in lumps], dtype=np.intp)
        chain = self.chain
        centres = [Item.point_on(chain, body.name, at) for body, at in zip(bodies, self._drawn, strict=True)]
        axes = [item for body in bodies for item in directions_on(chain, body.name, np.eye(3))]
        carried = [Item.point_on(chain, point.body, point.at) for point in lumps]
        turnings = [Item.angular_velocity(chain.frame[body.name]) for body in bodies]
        self._places = output_query(chain, plain_rows(chain, [*centres, *axes, *carried]), 1)
        self._moving = output_query(chain, plain_rows(chain, [*centres, *turnings, *carried]), 2)

    def _make_joints(self, drawing: MechanismDescription, length: float) -> None:
        tree, touching = self.tree, drawing._closed_contacts
        self.joints: tuple[Joint | Contact, ...] = (*drawing.joints, *touching)
        # columns of each body's six coordinates, and their units
        last = np.array([tree.frame[body.name] for body in drawing.bodies])
        self._columns = (last[:, None] + np.arange(-5, 1)).ravel()
        # entries of the state of each body: position and quaternion
        self._entries = tree.cols[last - 5, lay.STATE][:, None] + np.arange(7)
        self.column_scale = column_scales(tree, length)[self._columns].reshape(-1, 6)
        held = [closure_items(tree, joint) for joint in drawing.joints]
        held += [contact_items(tree, contact) for contact in touching]
        left = [joint_motion_items(tree, joint) for joint in drawing.joints]
        rods, self._on_rods = fixed_rows(tree, drawing._fixed_measures)
        (self.scale, self.owner), (self.scale_left, self.owner_left) = (
            self._scaled(items, length) for items in (held, left)
        )
        index = np.arange(len(self.joints))[:, None]
        self.sums, self.sums_left = ((index == own).astype(float) for own in (self.owner, self.owner_left))
        every = [item for of_joint in (*held, *left) for item in of_joint]
        self._rows = output_query(tree, plain_rows(tree, [*every, *rods]), 1)
        self.joint_coordinates = tuple(name for joint in drawing.joints for name in joint.components)
        self.stiffness, self.rest, self.damping, self.armature = (
            np.array([x for joint in drawing.joints for x in getattr(joint, key)], dtype=float)
            for key in ("stiffness", "rest", "damping", "armature")
        )
        self.contact_check = contact_force_check(touching)
        self._make_ties(drawing, length)
        # the wrench of a joint acts on the second body; if that is ground, it is the negative on the first
        first, second = (
            np.array([self._number.get(joint.bodies[k], -1) for joint in self.joints]) for k in (0, 1)
        )
        self._read = np.where(second < 0, first, second)
        self._sign = np.where(second < 0, -1.0, 1.0)
        # the point of a contact is fixed in the first body and slides on the second
        self._carrier = np.where([isinstance(joint, Contact) for joint in self.joints], first, second)
        self._at = np.array([joint.at or (0.0, 0.0, 0.0) for joint in self.joints])

    def _make_ties(self, drawing: MechanismDescription, length: float) -> None:
        count = len(drawing._fixed_distances)
        self.ties = (*(coupling.name for coupling in drawing.couplings), *drawing._fixed_names)
        # the row of an angle is minus its cosine
        sines = [np.sin(x) for x in drawing._fixed_angles.values()]
        self._rod_unit = np.array([1.0] * count + sines)[:, None, None]
        self.on_joint_coordinates = np.zeros((len(self.joint_coordinates), len(self.ties)))
        for k, coupling in enumerate(drawing.couplings):
            for coordinate, number in drawing._terms[coupling.name]:
                self.on_joint_coordinates[self.joint_coordinates.index(coordinate), k] = number
        terms = np.abs(self.on_joint_coordinates[:, : len(drawing.couplings)]) * self.scale_left[:, None]
        self.scale_ties = np.concatenate(
            [terms.max(axis=0, initial=0.0), [length] * count + [1.0] * len(sines)]
        )

    def _scaled(self, made: list[list[Item]], length: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the scales of the rows of all joints' items, and the joint index of each row."""
        items = [item for of_joint in made for item in of_joint]
        counts = [sum(heights(of_joint)) for of_joint in made]
        scales = row_scales(self.tree, plain_rows(self.tree, items), length)
        return scales, np.repeat(np.arange(len(made)), counts)

    def places(self, states: np.ndarray) -> Places:
        """Compute the positions of bodies, joints and point masses at states (B, S) of the mechanism."""
        values, count = self._places.arrays(states)[0], len(self._drawn)
        rows = values.reshape(len(states), values.shape[1] // 3, 3)
        origin = rows[:, :count]
        # columns of the rotation: unit vectors of the reference configuration, carried by the body
        turned = np.swapaxes(rows[:, count : 4 * count].reshape(len(states), count, 3, 3), -1, -2)
        of = self._carrier
        arm = np.einsum("bjik,jk->bji", turned[:, of], self._at - self._drawn[of])
        joints = np.where((of < 0)[:, None], self._at, origin[:, of] + arm)
        free = np.empty((len(states), self.tree.state_size))
        free[:, self._entries] = np.concatenate(
            [origin - self._drawn, quaternion_from_matrix(turned)], axis=-1
        )
        return Places(free, origin, turned, joints, rows[:, 4 * count :])

    def motion(
        self, states: np.ndarray, phid: np.ndarray, phidd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute twists of the bodies at their centres, and their rates, from the motion of the tree.

        Return twists and rates (B, N, 6), and the accelerations (B, L, 3) of the point masses.
        """
        count = len(self._drawn)
        v = self._moving.motion(states, (phid, phidd, np.zeros_like(phid)))[:, 1:]
        v = v.reshape(len(states), 2, 2 * count + len(self._lump_body), 3)
        twists = np.concatenate([v[:, :, :count], v[:, :, count : 2 * count]], axis=-1)
        return twists[:, 0], twists[:, 1], v[:, 1, 2 * count :]

    def inertia(self, places: Places, twists: np.ndarray, rates: np.ndarray, lumps: np.ndarray) -> np.ndarray:
        """Compute forces and moments (B, N, 6) about the centres for a `motion`, by Newton and Euler."""
        omega = twists[..., 3:]
        J = places.turned @ self._inertia @ np.swapaxes(places.turned, -1, -2)
        momentum = np.einsum("bnij,bnj->bni", J, omega)
        wrench = np.empty_like(rates)
        wrench[..., :3] = self._mass[:, None] * rates[..., :3]
        wrench[..., 3:] = np.einsum("bnij,bnj->bni", J, rates[..., 3:]) + np.cross(omega, momentum)
        force = self._lump_mass[:, None] * lumps
        arm = places.lumps - places.origin[:, self._lump_body]
        on = np.arange(len(self._drawn))[:, None] == self._lump_body
        return wrench + on.astype(float) @ np.concatenate([force, np.cross(arm, force)], axis=-1)

    def applied(self, places: Places, force: np.ndarray, twists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute load and drag (B, N, 6) on bodies with given twists: gravity, forces, springs, dampers."""
        count = len(twists)
        load, damping = self.loading.arrays(places.states, np.require(force, places.states.dtype, LAYOUT))
        rates = np.empty((count, self.tree.size))
        rates[:, self._columns] = twists.reshape(count, self.tree.size)
        return self.by_body(load), self.by_body(np.einsum("bmn,bn->bm", damping, rates))

    def by_body(self, G: np.ndarray) -> np.ndarray:
        """Reorder columns of the tree as (…, N, 6): velocity and angular velocity of each body."""
        return G[..., self._columns].reshape(*G.shape[:-1], len(self._drawn), 6)

    def first_order(self, question: Query, places: Places) -> np.ndarray:
        """Compute G (B, R, N, 6) of rows: forces and moments on the bodies for unit loads at the rows."""
        return self.by_body(question.arrays(places.states)[1])

    def joint_rows(self, places: Places) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute G of all closure rows, joint coordinates, and of `ties`.

        The shapes are (B, R, N, 6), (B, F, N, 6) and (B, K, N, 6).
        """
        G, first, last = self.first_order(self._rows, places), len(self.owner), len(self.owner_left)
        left, rods = G[:, first : first + last], G[:, first + last :][:, self._on_rods] / self._rod_unit
        coupled = np.einsum("fk,bfnc->bknc", self.on_joint_coordinates, left)
        count = len(self.ties) - rods.shape[1]
        return G[:, :first], left, np.concatenate([coupled[:, :count], rods], axis=1)

    def wrenches(self, G: np.ndarray, owner: np.ndarray, places: Places) -> np.ndarray:
        """Return wrenches (B, R, 6) of rows on the second bodies of their joints, about the joint points."""
        read = self._read[owner]
        W = G[:, np.arange(len(owner)), read] * self._sign[owner, None]
        arm = places.joints[:, owner] - places.origin[:, read]
        return np.concatenate([W[..., :3], W[..., 3:] - np.cross(arm, W[..., :3])], axis=-1)
