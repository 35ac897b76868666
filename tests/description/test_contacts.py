"""Contacts compared with equivalent joints, their rows from geometry, and invalid contacts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hands import BOUNDS, hand
from raising import raises
from sampling import check_orders, mismatch

import kic
from kic.description.contacts import CONTACT_ROWS
from kic.kinematics.closure_rows import contact_axes, spin_axis
from kic.mechanism.configuration import displacement

KINDS = tuple(CONTACT_ROWS)
Z = (0.0, 0.0, 1.0)
every_kind = pytest.mark.parametrize("kind", KINDS)


def opened(m: kic.Mechanism) -> kic.Mechanism:
    return replace(m, contacts=[replace(c, closed=False) for c in m.contacts])


def inputs(m: kic.Mechanism) -> list[str]:
    """Finger joints that drive the mechanism well."""
    among = [joint.name for joint in m.joints if joint.type == "revolute"]
    return list(m.mobility().independent_sets(of=among, count=1)[0].names)


def moved(m: kic.Mechanism, wrt: list[str], seed: int = 0, size: float = 0.05):
    """Return a closed configuration near the reference configuration."""
    way = np.random.default_rng(seed).uniform(-size, size, len(wrt))
    return m.at(dict(zip(wrt, way, strict=True)), near=m.at())


# ----------------------------------------------------------------------------------------- mobility


@pytest.mark.parametrize(
    ("kinds", "links", "freedoms"),
    [
        (("friction",) * 3, 3, 6),
        (("pinned",) * 3, 3, 6),
        (("soft",) * 3, 4, 6),
        (("point",) * 3, 3, 12),
        (("point", "friction", "soft", "pinned"), 3, 18 - 11),
    ],
)
def test_each_kind_counts(kinds, links, freedoms) -> None:
    m = hand(1, kinds, links)
    assert (m.dof, m.mobility().redundant, m.mobility().cuts) == (freedoms, 0, ())
    assert m.mobility().regular
    assert m.mobility().conditions == {f"c{k}": len(CONTACT_ROWS[kind]) for k, kind in enumerate(kinds)}
    assert f"closure conditions of {len(kinds)} contacts (c0, c1, c2" in m.mobility().summary()
    free = opened(m)
    assert free.dof == freedoms + sum(len(CONTACT_ROWS[kind]) for kind in kinds)
    assert free.mobility().conditions == {}
    one = replace(m, contacts=[m.contacts[0], *opened(m).contacts[1:]])
    assert one.dof == free.dof - len(CONTACT_ROWS[kinds[0]])


# ------------------------------------------------------------ contacts and the joints they stand for


def as_joints(m: kic.Mechanism) -> kic.Mechanism:
    """The same, with each contact drawn as joints; a point without friction as two, with a body between."""
    joints, bodies = list(m.joints), list(m.bodies)
    for c in m.contacts:
        finger, touched = c.bodies
        _, t1, t2 = (tuple(u) for u in contact_axes(c))
        if c.type == "soft":
            joints.append(kic.Joint(c.name, "universal", (touched, finger), c.at, t1, axis2=t2))
        elif c.type == "point":
            puck = f"puck {c.name}"
            bodies.append(kic.Body(puck, mass=0, com=c.at, inertia=(0, 0, 0)))
            joints.append(kic.Joint(f"{c.name} glide", "planar", (touched, puck), c.at, t1, axis2=t2))
            joints.append(kic.Joint(c.name, "universal", (puck, finger), c.at, t1, axis2=t2))
        else:
            joints.append(kic.Joint(c.name, "spherical", (touched, finger), c.at))
    return replace(m, joints=joints, bodies=bodies, contacts=())


CASES = {  # drawn so that they move well
    "friction": (11, ("friction",) * 3, 3),
    "pinned": (11, ("pinned",) * 3, 3),
    "soft": (20, ("soft",) * 3, 4),
    "point": (0, ("point", "friction", "friction"), (2, 3, 3)),
    "mixed": (38, ("point", "soft", "pinned"), (1, 4, 3)),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_contacts_are_equivalent_to_joints(name: str, turned: bool) -> None:
    """Compare mobility, configurations, coefficients, dynamics and forces with those of joints."""
    m = hand(*CASES[name], turned=turned)
    other = as_joints(m)
    assert m.dof == other.dof
    wrt = inputs(m)
    a, b = (moved(x, wrt) for x in (m, other))
    for body in ("box", "f00"):
        assert np.abs(displacement(a, body) - displacement(b, body)).max() < 1e-11
    x, y = (c.coefficients(["box", "tip0", "j21"], order=3, wrt=wrt) for c in (a, b))
    # both configurations are closed to rounding, which every order amplifies
    limit = 1e-11 * max(1.0, float(m.prepare.coefficients("box", wrt=wrt).check(a.state)))
    for letter in "GHD":
        assert mismatch(getattr(x, letter), getattr(y, letter)) < limit
    d, e = (c.dynamics(wrt=wrt) for c in (a, b))
    for letter in ("I", "P", "load"):
        assert mismatch(getattr(d, letter), getattr(e, letter)) < limit
    rates = np.random.default_rng(3).normal(size=(2, m.dof))
    f, g = (c.joint_forces(*rates, wrt=wrt) for c in (a, b))
    assert f.undetermined == g.undetermined == ()
    assert mismatch(f.effort, g.effort) < limit
    for contact in m.contacts:
        # joints are written with the touched body first
        one, two = f[contact.name], g[contact.name].about(f[contact.name].point)
        assert one.bodies == contact.bodies
        assert mismatch(one.force, -two.force) < limit
        moment = np.abs(one.moment + two.moment).max()
        assert moment < limit * np.abs(f.force).max()
        if contact.type != "soft":
            assert np.abs(one.moment).max() < limit * np.abs(f.force).max()
        if contact.type == "point":
            normal = a.pose(contact.bodies[1]).rotation.apply(contact.normal)
            assert np.abs(np.cross(one.force, normal)).max() < limit * np.abs(f.force).max()


# ---------------------------------------------------------------------------------------------- rows


def by_hand(c, contact: kic.Contact) -> np.ndarray:
    """Return the rows of a contact at one configuration from the poses of its bodies."""
    place = {body: np.eye(4) if body == "ground" else displacement(c, body) for body in contact.bodies}
    one, two = (place[body] for body in contact.bodies)
    gap = two[:3, :3] @ contact.at + two[:3, 3] - one[:3, :3] @ contact.at - one[:3, 3]
    axes = contact_axes(contact)
    rows = [*(two[:3, :3] @ u @ gap for u in axes), (two[:3, :3] @ axes[1]) @ (one[:3, :3] @ axes[2])]
    return np.array(rows[: len(CONTACT_ROWS[contact.type])] if contact.type != "point" else rows[:1])


def test_axes_are_a_right_handed_frame_on_the_normal() -> None:
    rng = np.random.default_rng(0)
    for normal in [*np.eye(3), *-np.eye(3), *rng.normal(size=(5, 3)), None]:
        given = None if normal is None else tuple(7 * normal)
        axes = contact_axes(kic.Contact("c", "pinned", ("a", "b"), (0, 0, 0), normal=given))
        assert np.abs(axes @ axes.T - np.eye(3)).max() < 1e-13
        assert np.linalg.det(axes) == pytest.approx(1, abs=1e-13)
        way = np.array([0, 0, 1]) if normal is None else normal / np.linalg.norm(normal)
        assert np.abs(axes[0] - way).max() < 1e-14


@every_kind
def test_rows_of_open_contacts(kind: str) -> None:
    """Values from geometry, rates from velocities, and each order the complex step of the one below."""
    m = opened(hand(4, (kind, "friction")))
    rng = np.random.default_rng(5)
    names = ["box", *(f"j{k}{n}" for k in (0, 1) for n in range(3))]
    c = m.at(rng.normal(size=m.dof))
    contact = m.contacts[0]
    rows = c.coefficients("c0", order=3, wrt=names)
    assert rows.rows == contact.rows
    assert np.abs(rows.values - by_hand(c, contact)).max() < 1e-14
    assert np.abs(np.atleast_1d(c.value("c0")) - rows.values).max() < 1e-14
    check_orders(c, "c0", names)


def test_signs() -> None:
    """The gap grows where the foot is lifted; spin counts the second body's turn about the normal."""
    lifted = kic.Mechanism(
        "foot",
        [kic.Body("foot", mass=1.0, com=(0, 0, 0.1), inertia=(0.1, 0.1, 0.1))],
        [kic.Joint("lift", "prismatic", ("ground", "foot"), axis=(0, 0, 1))],
        contacts=[kic.Contact("c", "point", ("foot", "ground"), (0, 0, 0), normal=(0, 0, -1), closed=False)],
    )
    assert lifted.at([0.3]).value("c.n") == pytest.approx(0.3)
    assert lifted.at({"c.n": 0.2}).value("lift") == pytest.approx(0.2)  # a gap can be an input
    assert lifted.at([0.3]).coefficients("lift", wrt="c.n").G.item() == pytest.approx(1)
    for pair, sign in ((("ground", "disc"), 1), (("disc", "ground"), -1)):
        disc = kic.Mechanism(
            "disc",
            [kic.Body("disc", mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.1))],
            [kic.Joint("turn", "revolute", ("ground", "disc"), (0, 0, 0), (0, 0, 1))],
            contacts=[
                kic.Contact(
                    "c", "soft", pair, (0, 0, 0), normal=(0, 0, 1), friction=0.5, torsion=0.1, closed=False
                )
            ],
        )
        assert disc.at([0.2]).value("c.s") == pytest.approx(sign * np.sin(0.2))
        assert disc.at([0.0]).coefficients("c.s").G.item() == pytest.approx(sign)


@pytest.mark.parametrize("name", CASES)
def test_closed_contacts_stay_closed(name: str) -> None:
    m = hand(*CASES[name])
    wrt = inputs(m)
    c = moved(m, wrt)
    assert np.abs(displacement(c, "box") - np.eye(4)).max() > 1e-2
    for contact in m.contacts:
        assert np.abs(by_hand(c, contact)).max() < 1e-11
        rows = c.coefficients(contact.name, order=3, wrt=wrt)
        for letter in "GHD":
            assert np.abs(getattr(rows, letter)).max() < 1e-8
    if "point" in name:  # it glides
        assert np.linalg.norm(c.value("tip0") - c.value("spot0")) > 1e-3


# --------------------------------------------------------------------------------- two soft discs


def discs(**given) -> kic.Mechanism:
    """Two discs on one axis, face to face; friction at a soft contact turns one with the other."""
    soft = {"type": "soft", "friction": 0.5, "torsion": 0.1} | given
    return kic.Mechanism(
        "discs",
        [kic.Body(x, mass=1.0, com=(0, 0, 0), inertia=(0.1, 0.1, 0.2)) for x in "ab"],
        [kic.Joint(x.upper(), "revolute", ("ground", x), (0, 0, 0), (0, 0, 1)) for x in "ab"],
        contacts=[kic.Contact("face", bodies=("a", "b"), at=(0, 0, 0.5), normal=(0, 0, 1), **soft)],
        coordinates=["A"],
    )


def test_a_soft_contact_carries_a_moment() -> None:
    m = discs()
    assert (m.dof, m.mobility().redundant) == (1, 3)
    c = m.at([0.7])
    assert c.value("B") == pytest.approx(0.7, abs=1e-12)
    f = c.joint_forces(qdd=[3.0])
    assert f.effort == pytest.approx([1.2])
    assert f["face"].moment[2] == pytest.approx(0.6)  # of a on b
    assert f["face"].bodies == ("a", "b")
    assert "contact 'face'" in m.mobility().summary()


def tilting(axis: tuple[float, float, float]) -> kic.Mechanism:
    """Return a box that rolls over a fixed soft finger, by a hinge along one of its tangents."""
    return kic.Mechanism(
        "tilting",
        [kic.Body("box", mass=1.0, com=(0, 0.1, 1), inertia=(0.1, 0.2, 0.25))],
        [kic.Joint("A", "revolute", ("ground", "box"), (0, 0, 0), axis)],
        contacts=[
            kic.Contact("tip", "soft", ("ground", "box"), (0, 0, 0), normal=Z, friction=0.5, torsion=0.1)
        ],
    )


def accepted(m: kic.Mechanism, values: list[float]) -> kic.Configuration:
    """Return a configuration that all accept: on the way from the reference, as a state, and as a start."""
    c = m.at(values, near=m.at())
    m.prepare.coefficients(m.bodies[-1].name)(c.state, check=True)
    assert m.simulate(1e-3, near=c, integrator=kic.Integrator(progress=False)).configuration.ok.all()
    return c


@pytest.mark.parametrize("tangent", [1, 2])
def test_a_soft_contact_tilts_beyond_a_right_angle(tangent: int) -> None:
    m = tilting(tuple(contact_axes(tilting(Z)["tip"])[tangent]))
    for angle in (1.0, 2.0, 3.0, -2.0):
        accepted(m, [angle])


def test_a_soft_contact_tilts_about_both_tangents() -> None:
    """Like a universal joint; also after a lock, which moves the reference configuration."""
    y, x = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)
    bodies = [kic.Body(b, mass=1.0, com=(0.2, 0, 0.1), inertia=(0.1, 0.2, 0.25)) for b in "abd"]
    joints = [
        kic.Joint("A", "revolute", ("ground", "a"), (0, 0, 0), y),
        kic.Joint("B", "revolute", ("a", "b"), (0, 0, 0), x),
        kic.Joint("D", "revolute", ("b", "d"), (0.3, 0, 0), Z),
    ]
    soft = kic.Contact("c", "soft", ("ground", "b"), (0, 0, 0), normal=Z, friction=0.5, torsion=0.1)
    m = kic.Mechanism("rolling", bodies, joints, contacts=[soft], coordinates=["A", "B", "D"])
    universal = kic.Joint("U", "universal", ("b", "ground"), (0, 0, 0), x, axis2=y)
    other = m.without("c").add(universal)
    for one in (m, m.lock({"A": -1.0}).unlock(), other):
        for values in ([1.7, 1.7, 0.2], [2.5, -2.5, 0.2], [-1.7, 1.7, 0.2]):
            c = accepted(one, values)
            there = m.at(values)
            G = c.coefficients("d", order=1).G
            assert np.allclose(G, there.coefficients("d", order=1).G, atol=1e-9)


@pytest.mark.parametrize("angle", [0.5, 2.0])
def test_loops_close_where_a_soft_contact_is_tilted(angle: float) -> None:
    m = tilting(tuple(contact_axes(tilting(Z)["tip"])[1]))
    there = m.at([angle], near=m.at()).pose("box").apply([0.2, 0.3, 1.0])
    m = m.add(kic.Point("corner", "box", (0.2, 0.3, 1.0)), kic.Point("hook", "ground", there))
    closed = m.close_loops([("corner", "hook")], near={"A": angle - 0.1})
    assert closed["A"].value == pytest.approx((angle,), abs=1e-9)


def test_half_a_turn_of_spin_is_another_assembly_mode() -> None:
    """The discs of a soft contact have the modes of a universal joint in its place."""
    m = discs()
    t1, t2 = (tuple(u) for u in contact_axes(m["face"])[1:])
    joint = kic.Joint("U", "universal", ("b", "a"), m["face"].at, t1, axis2=t2)
    for one in (m, m.without("face").add(joint).replace(coordinates=["A"])):
        one.prepare.coefficients("B").check(np.array([0.0, np.pi]))
        found = one.assembly_modes({"A": 0.3}).configuration.value("B")
        assert np.allclose(np.sort(np.cos(found - 0.3)), [-1, 1], atol=1e-9)


def test_a_contact_changes_its_type_in_one_call() -> None:
    tilted = replace(tilting(Z)["tip"], tangent=(1, 0, 0), tangent2=(0, 1, 0.5))
    m = replace(tilting(Z), contacts=[tilted])
    for kind, kept in {"friction": {"friction": 0.5}, "point": {}, "pinned": {}}.items():
        made = m.replace("tip", type=kind)["tip"]
        assert made == kic.Contact(
            "tip", kind, ("ground", "box"), (0, 0, 0), normal=Z, tangent=(1, 0, 0), **kept
        )


def test_tangents_of_contacts() -> None:
    soft = tilting(Z)["tip"]
    own = replace(soft, tangent=(3, 4, 7))
    assert np.allclose(contact_axes(own), [Z, (0.6, 0.8, 0), (-0.8, 0.6, 0)], atol=1e-15)
    assert np.allclose(spin_axis(own), (-0.8, 0.6, 0), atol=1e-15)
    tilted = replace(own, tangent2=(-0.8, 0.6, 2.0))
    assert np.allclose(spin_axis(tilted), np.array([-0.8, 0.6, 2.0]) / np.sqrt(5), atol=1e-15)
    pin = kic.Contact("pin", "pinned", ("a", "b"), (0, 0, 0), tangent=(0, 2, 1))
    assert np.allclose(contact_axes(pin), [Z, (0, 1, 0), (-1, 0, 0)], atol=1e-15)


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({"tangent": (0, 0, -2)}, "tangent", "must not be parallel to `normal`"),
        ({"tangent": (1, 0, 0), "tangent2": (-3, 0, 0)}, "tangent2", "must not be parallel to `tangent`"),
        ({"tangent2": (1, 0, 0)}, "tangent2", "needs a soft contact with `tangent`"),
        (
            {"type": "friction", "torsion": None, "tangent": (1, 0, 0), "tangent2": (0, 1, 0)},
            "tangent2",
            "needs a contact of type 'soft'",
        ),
        ({"tangent": (0, 0, 0)}, "tangent", "is zero"),
    ],
)
def test_invalid_tangents_raise(given: dict, key: str, words: str) -> None:
    with raises(kic.ModelError, key=key) as caught:
        replace(tilting(Z)["tip"], **given)
    assert words in str(caught.value)


def test_axes_of_contacts_have_derivatives() -> None:
    m = hand(20, ("soft",) * 3, 4)
    hinges = [joint.name for joint in m.joints if joint.type == "revolute"]
    m = replace(m, coordinates=m.mobility().independent_sets(of=hinges, count=1)[0].names)
    c = m.replace("c0", tangent=(1, 0, 0), tangent2=(0, 1, 0.1))

    def rows(m: kic.Mechanism) -> np.ndarray:
        return m.at().coefficients("box", order=1, wrt=m.coordinates).G

    for name in ("c0.tangent.rz", "c0.tangent2.rx", "c0.normal.ry"):
        part, key, _ = name.split(".")
        axis = np.eye(3)["xyz".index(name[-1])]
        found = c.sensitivity(rows, name)
        ends = [
            rows(c.replace(part, **{key: getattr(c[part], key) + s * np.cross(axis, getattr(c[part], key))}))
            for s in (1e-6, -1e-6)
        ]
        assert np.allclose(found, (ends[0] - ends[1]) / 2e-6, atol=1e-6 * abs(found).max() + 1e-7)


def test_a_contact_without_hold_leaves_the_discs_alone() -> None:
    m = discs(type="point", friction=None, torsion=None)
    assert (replace(m, coordinates=["A", "B"]).dof, m.mobility().redundant) == (2, 1)
    loose = replace(discs(closed=False), coordinates=["A", "B"])
    assert loose.dof == 2
    assert "face" not in loose.at([0.1, 0.2]).joint_forces().joints


# ------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
def test_batches(batch: tuple[int, ...]) -> None:
    m = hand(*CASES["friction"])
    m = replace(m, coordinates=inputs(m))
    q = 0.02 * np.random.default_rng(1).normal(size=(*batch, 6))
    near = m.at()
    c = m.at(q, near=near)
    both = c.coefficients(["box", "c1"], order=2)
    forces = c.joint_forces(np.ones(6))
    assert both.G.shape == (*batch, 9, 6)
    assert forces["c2"].force.shape == (*batch, 3)
    for index in np.ndindex(*batch):
        one = m.at(q[index], near=near)
        assert mismatch(both.H[index][:6], one.coefficients("box", order=2).H) < 1e-9
        assert mismatch(forces["c2"].force[index], one.joint_forces(np.ones(6))["c2"].force) < 1e-9
    f = m.prepare.coefficients_and_dynamics("box")
    assert mismatch(f(c.state).box.G, both.G[..., :6, :]) < 1e-11


# ------------------------------------------------------------------------------- invalid contacts

GIVEN = {
    "name": "c",
    "type": "friction",
    "bodies": ("a", "b"),
    "at": (0, 0, 0),
    "normal": (0, 0, 1),
    "friction": 0.5,
}
WRONG = [
    ({"name": "a.b"}, "name", "A contact's `name` must be text without dots"),
    ({"type": "rolling"}, "type", "`type` must be one of 'point', 'friction', 'soft', 'pinned', got"),
    ({"bodies": ("a", "a")}, "bodies", "Contact 'c': `bodies` must name two different bodies, got"),
    ({"bodies": ("a",)}, "bodies", "`bodies` must name two different bodies"),
    ({"at": (0, 0)}, "at", "`at` must be three finite numbers"),
    ({"normal": (0, 0, 0)}, "normal", "Contact 'c': `normal` is zero; give a direction."),
    ({"normal": None}, "normal", "a friction contact needs `normal`, the direction in which 'a' pushes 'b'."),
    ({"friction": None}, "friction", "a friction contact needs `friction`, the coefficient of friction."),
    ({"friction": -0.1}, "friction",
        "`friction` must be larger than 0, got -0.1. Without it, use the type 'point'."),
    ({"friction": 0}, "friction", "`friction` must be larger than 0, got 0."),
    ({"friction": np.inf}, "friction", "`friction` must be a finite number"),
    ({"torsion": 0.1}, "torsion",
        "no `torsion`, got 0.1. Leave it out, or use the type 'soft'."),
    ({"type": "point"}, "friction",
        "no `friction`, got 0.5. Leave it out, or use the type 'friction' or 'soft'."),
    ({"type": "pinned"}, "friction", "a pinned contact has no `friction`"),
    ({"type": "soft"}, "torsion",
        "a soft contact needs `torsion`, the largest moment per unit of normal force, a length."),
    ({"type": "soft", "torsion": 0.0}, "torsion", "Without it, use the type 'friction'."),
    ({"closed": 1}, "closed", "Contact 'c': `closed` must be True or False, got 1."),
]  # fmt: skip


@pytest.mark.parametrize(("change", "key", "text"), WRONG)
def test_contacts_that_cannot_be(change: dict, key: str, text: str) -> None:
    with pytest.raises(kic.ModelError) as caught:
        kic.Contact(**(GIVEN | change))
    assert caught.value.key == key
    assert text in str(caught.value)


@pytest.mark.slow
def test_friction_may_carry_a_step() -> None:
    """Friction is a number of a sensitivity; negative values raise an error there, too."""
    m = kic.load("three-finger-hand")

    def drawn(x):
        return replace(m, contacts=[replace(c, friction=x[0]) for c in m.contacts])

    found = kic.sensitivity(drawn, lambda m: m.at().grasp("ball").friction, [0.7])
    assert found.tolist() == [[1.0, 1.0, 1.0]]
    with raises(kic.ModelError, key="friction"):
        kic.sensitivity(drawn, lambda m: m.at().grasp("ball").friction, [-0.7])


def test_drawings_that_cannot_be() -> None:
    m = discs()
    with raises(kic.ModelError, key="contacts[0].bodies", name="c") as caught:
        replace(m, contacts=[replace(m.contacts[0], bodies=("a", "c"))])
    assert caught.value.key == "contacts[0].bodies"
    with raises(kic.ModelError, key="contacts[0].name", name="A") as caught:
        replace(m, contacts=[replace(m.contacts[0], name="A")])
    assert caught.value.key == "contacts[0].name"
    # contacts hang nothing on ground: the tree is one of joints
    with raises(kic.ModelError, key="bodies[1]", bodies=("b",)):
        replace(m, joints=m.joints[:1])


def test_rows_of_closed_contacts_are_not_coordinates() -> None:
    m = discs()
    for name in ("face", "face.s"):
        with raises(kic.InputError, name="face"):
            m.at().coefficients("B", wrt=name)
    with raises(kic.UnknownNameError, name="face.x"):
        m.at().coefficients("face.x")


# ----------------------------------------------------------------------------------------- model files


def test_files(tmp_path) -> None:
    for m in (hand(3, KINDS, coordinates=["j00"]), opened(discs())):
        file = tmp_path / "m.toml"
        m.save(file)
        assert kic.load(file) == m
    assert "closed = false" in file.read_text()
    known = kic.schema()["$defs"]["Contact"]
    assert known["required"] == ["name", "type", "bodies", "at"]
    assert known["properties"]["type"]["enum"] == list(KINDS)


@pytest.mark.parametrize(
    ("text", "key", "rule"),
    [
        ("type = 'rolling'", "contacts[0].type", "must be one of 'point', 'friction', 'soft', 'pinned'"),
        ("type = 'point'", "contacts[0].normal", "a point contact needs `normal`"),
        ("type = 'pinned'\nfriction = 1.0", "contacts[0].friction", "a pinned contact has no `friction`"),
        ("type = 'pinned'\nclosed = 0", "contacts[0].closed", "must be true or false, got 0"),
        ("type = 'pinned'\nmu = 1", "contacts[0].mu", "Keys here: name, type, bodies, at, normal, tangent"),
    ],
)  # fmt: skip
def test_invalid_files_raise(text: str, key: str, rule: str, tmp_path) -> None:
    head = """name = "m"
        bodies = [{name = "a"}]
        joints = [{name="A", type="revolute", bodies=["ground", "a"], at=[0, 0, 0], axis=[0, 0, 1]}]
        """
    file = tmp_path / "m.toml"
    file.write_text(
        f"{head}\n[[contacts]]\nname = 'c'\nbodies = ['a', 'ground']\nat = [0, 0, 0]\n{text}\n",
        encoding="utf-8",
    )
    with pytest.raises(kic.ModelFileError) as caught:
        kic.load(file)
    assert caught.value.key == key
    assert rule in str(caught.value)


def test_errors_are_reported() -> None:
    m = replace(discs(), contacts=[*discs().contacts, replace(discs().contacts[0], name="off", closed=False)])
    said = m.summary().text()
    assert "a on b" in said
    assert "open" in said
    from kic.ui.report.report import report, summary

    assert "2 contacts" in summary(m)
    walker = kic.load("walking-machine-on-feet")
    told = report(walker, walker.at()).text()
    assert "foot1  friction  shank1 on ground       0.8" in told
    assert BOUNDS.keys() == CONTACT_ROWS.keys()
