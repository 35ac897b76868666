"""Chapters III and IV of the dissertation as printed, with `Coefficients` and `Dynamics` only."""

from __future__ import annotations

import numpy as np
import pytest
from arms import DATA, arm
from sampling import mismatch, random_posture, random_tree

import kic

CASE = DATA["transfer_hand"]
E = np.einsum


@pytest.fixture(scope="module")
def leg() -> kic.Configuration:
    """The arm RRPRRR of the reference data."""
    return arm(CASE["chain"], hand=CASE["P_local"]).at(CASE["phi"])


HAND = ["hand", "l6.wx", "l6.wy", "l6.wz"]  # q = (P, ω)


def close(found: np.ndarray, want, tolerance: float = 1e-12) -> None:
    """Entry by entry, beside the largest."""
    assert mismatch(found, np.asarray(want)) < tolerance


# --- Chapter III -------------------------------------------------------------------------------------------


def test_direct_transfer(leg) -> None:
    """(3-11) to (3-19) and the third order (3-47), against 60 digits."""
    hand = leg.coefficients(HAND, order=3)
    inverse = hand.inverse()
    assert inverse.rows == leg.coordinates
    assert inverse.columns == ("hand.x", "hand.y", "hand.z", "l6.wx", "l6.wy", "l6.wz")
    close(inverse.G, CASE["G_q_phi"])
    close(inverse.H, CASE["H_qq_phi"])
    close(inverse.D, CASE["D_qqq_phi"])
    # as printed: (3-15), and (3-19) with the dot product, the planes between K on both sides
    K = np.linalg.inv(hand.G)
    close(inverse.G, K)
    close(inverse.H, -kic.products.quadratic(kic.products.dot(K, hand.H), K))
    # the third order in the words of the reference: K, h̄, d̄
    h = E("pab,am,bn->pmn", hand.H, K, K)
    d = E("pcab,cl,am,bn->plmn", hand.D, K, K, K)
    H = -E("ip,pmn->imn", K, h)
    third = (
        -E("ip,plmn->ilmn", K, d)
        - E("ilp,pmn->ilmn", H, h)
        - E("plm,ipn->ilmn", h, H)
        - E("pln,imp->ilmn", h, H)
    )
    close(inverse.D, third)


def test_third_order_of_angular_velocities(leg) -> None:
    """h̄_lm − h̄_ml = e_l × e_m, D_lmn − D_mln = −(e_l × e_m)_p H_pn, D_lmn − D_lnm = −(e_m × e_n)_p H_lp."""
    hand = leg.coefficients(HAND, order=3)
    inverse = hand.inverse()
    H, D = inverse.H, inverse.D
    turn = np.zeros((6, 6, 6))
    turn[3:, 3:, 3:] = np.moveaxis(np.cross(np.eye(3)[:, None], np.eye(3)[None]), -1, 0)
    h = E("pab,am,bn->pmn", hand.H, inverse.G, inverse.G)
    close(h - h.swapaxes(1, 2), turn)
    scale = np.abs(D).max()
    assert np.abs(D - D.swapaxes(1, 2) + E("plm,ipn->ilmn", turn, H)).max() < 1e-12 * scale
    assert np.abs(D - D.swapaxes(2, 3) + E("pmn,ilp->ilmn", turn, H)).max() < 1e-12 * scale
    assert not inverse.holonomic


def test_general_dependents(leg) -> None:
    """(3-20) to (3-28): another point of the arm with respect to the hand, to third order."""
    hand = leg.coefficients(HAND, order=3)
    u = leg.coefficients(["l3", "l4.wx", "l4.wy", "l4.wz", "j2"], order=3)
    found = u @ hand.inverse()
    K = np.linalg.inv(hand.G)
    close(found.G, u.G @ K)  # (3-22)
    GK = u.G @ K
    close(found.H, kic.products.quadratic(u.H - kic.products.dot(GK, hand.H), K))  # (3-26)
    h = E("pab,am,bn->pmn", hand.H, K, K)
    d = E("pcab,cl,am,bn->plmn", hand.D, K, K, K)
    third = (
        E("ucab,cl,am,bn->ulmn", u.D, K, K, K)
        - E("up,plmn->ulmn", GK, d)
        - E("ulp,pmn->ulmn", found.H, h)
        - E("plm,upn->ulmn", h, found.H)
        - E("pln,ump->ulmn", h, found.H)
    )
    close(found.D, third, 1e-11)
    # where u is φ itself, it is the direct transfer (3-27), (3-28)
    same = kic.Coefficients.identity(leg.coordinates) @ hand.inverse()
    for s, t in zip(same.tensors, hand.inverse().tensors, strict=True):
        assert np.array_equal(s, t)


def test_resolved_motion(leg) -> None:
    """(3-14), (3-16), (3-46): rates, accelerations and jerks of the joints for a motion of the hand."""
    rng = np.random.default_rng(1)
    hand = leg.coefficients(HAND, order=3)
    inverse = hand.inverse()
    qd, qdd, qddd = rng.normal(size=(3, 50, 6))
    for i in range(50):
        v = np.linalg.solve(hand.G, qd[i])
        a = np.linalg.solve(hand.G, qdd[i] - E("pmn,m,n->p", hand.H, v, v))
        weighted = hand.H + 2 * hand.H.swapaxes(1, 2)
        right = qddd[i] - E("pmn,m,n->p", weighted, a, v) - E("plmn,l,m,n->p", hand.D, v, v, v)
        j = np.linalg.solve(hand.G, right)
        close(inverse.velocity(qd[i]), v)
        close(inverse.acceleration(qd[i], qdd[i]), a)
        close(inverse.jerk(qd[i], qdd[i], qddd[i]), j)
    v = inverse.velocity(qd)
    a = inverse.acceleration(qd, qdd)
    close(hand.velocity(v), qd)
    close(hand.acceleration(v, a), qdd)
    close(hand.jerk(v, a, inverse.jerk(qd, qdd, qddd)), qddd, 1e-11)


def test_dynamics_at_the_hand(leg) -> None:
    """(3-29) to (3-36). P* of kic and of the source are two arrays of one quadratic form."""
    inverse = leg.coefficients(HAND).inverse()
    d = leg.dynamics().transfer(inverse)
    close(d.I, CASE["I_qq"])
    # the source's P*, from the sums of its links, transferred by the same formula
    shares = leg.body_contributions()
    literal = kic.Dynamics(
        leg.coordinates, leg.dynamics().I, (shares.P_linear + shares.P_angular).sum(axis=0), holonomic=False
    )
    source = literal.transfer(inverse)
    close(source.P, CASE["P_qqq"])
    # (3-35) as printed
    G = leg.coefficients(HAND).G
    K = np.linalg.inv(G)
    inner = kic.products.dot(K.T, literal.P) - kic.products.dot(d.I, leg.coefficients(HAND).H)
    close(source.P, kic.products.quadratic(inner, K))
    both = [x + x.swapaxes(1, 2) for x in (d.P, source.P)]
    close(*both)
    assert mismatch(d.P, source.P) > 1e-3
    # T_φ = Gᵀ T_q (3-10) for one motion in both coordinates
    rng = np.random.default_rng(2)
    qd, qdd = rng.normal(size=(2, 6))
    v, a = inverse.velocity(qd), inverse.acceleration(qd, qdd)
    close(G.T @ d.inverse_dynamics(qd, qdd), leg.dynamics().inverse_dynamics(v, a))
    close(G.T @ source.inverse_dynamics(qd, qdd), leg.dynamics().inverse_dynamics(v, a))
    assert not d.holonomic


def test_loads_at_the_hand() -> None:
    """(3-36) to (3-42): loads transferred are loads carried by the transferred coefficients."""
    case = CASE["chain"]
    weight = (0.3, -0.4, -9.81)
    m = arm(case, hand=CASE["P_local"], gravity=weight)
    c = m.at(CASE["phi"])
    inverse = c.coefficients(HAND).inverse()
    want = np.zeros(6)
    for body in m.bodies:
        centre = c.coefficients(body.name)[[f"{body.name}.{x}" for x in "xyz"]]
        want += (centre @ inverse).G.T @ (body.mass * np.array(weight))
    close(c.dynamics().transfer(inverse).load, want)
    damped = kic.Dynamics(m.coordinates, c.dynamics().I, c.dynamics().P, damping=np.diag(np.arange(6.0)))
    K = inverse.G
    close(damped.transfer(inverse).damping, K.T @ np.diag(np.arange(6.0)) @ K)


def test_transfer_by_hand_equals_wrt(leg) -> None:
    """Direct evaluation, which uses other code, agrees."""
    inverse = leg.coefficients(HAND, order=3).inverse()
    found, want = leg.coefficients("l3", order=3) @ inverse, leg.coefficients("l3", order=3, wrt=HAND)
    assert found.columns == want.columns
    for s, t in zip(found.tensors, want.tensors, strict=True):
        close(s, t)
    d, other = leg.dynamics().transfer(inverse), leg.dynamics(wrt=HAND)
    close(d.I, other.I)
    close(d.P, other.P)


def wrist_point() -> kic.Mechanism:
    """Appendix B: the first three joints of a wrist-partitioned arm; joints 2 and 3 parallel."""
    rows = [
        kic.DHRow("t1", "base", d=0.4),
        kic.DHRow("t2", "upper", alpha=np.pi / 2),
        kic.DHRow("t3", "lower", a=1.3),
    ]
    return kic.from_dh("wrist", rows, convention="freeman", points=[kic.Point("P", "lower", at=(0.9, 0, 0))])


def test_simple_manipulator_of_appendix_b() -> None:
    """Against the joint angles solved for the wrist point, and the numbers of the reference."""
    m = wrist_point()
    angles = np.array([0.3, 0.7, -1.1])
    # the point is given in the axes of its own body as drawn: everything along x
    assert m.at([0, 0, 0]).value("P") == pytest.approx([2.2, 0, 0.4])

    def solved(P: np.ndarray) -> np.ndarray:
        """Joint angles, the elbow as at `angles`; passes complex steps."""
        x, y, z = P[0], P[1], P[2] - 0.4
        r = np.sqrt(x * x + y * y)
        c3 = (r * r + z * z - 1.3**2 - 0.9**2) / (2 * 1.3 * 0.9)
        s3 = -np.sqrt(1 - c3 * c3)
        along, across = 1.3 + 0.9 * c3, 0.9 * s3

        def angle(s, c):
            whole = np.arctan2(s.real, c.real)
            return whole + 1j * (c.real * s.imag - s.real * c.imag) / (c.real**2 + s.real**2)

        return np.array([angle(y, x), angle(z * along - r * across, r * along + z * across), angle(s3, c3)])

    P = m.at(angles).value("P")
    assert solved(P + 0j).real == pytest.approx(angles)
    inverse = m.at(angles).coefficients("P", order=3).inverse()
    step = 1e-40
    for k in range(3):
        moved = solved(P + 1j * step * np.eye(3)[k])
        close(moved.imag / step, inverse.G[:, k])
        again = m.at(moved).coefficients("P").inverse()
        close(again.G.imag / step, inverse.H[:, k])
        close(again.H.imag / step, inverse.D[:, k])
    printed = [
        [[0.169856, -0.248278, 0], [-0.248278, -0.169856, 0], [0, 0, 0]],
        [
            [-0.976331, -0.167134, -0.43845],
            [-0.167134, -0.487734, -0.135629],
            [-0.43845, -0.135629, -0.558623],
        ],
        [[2.37929, 0.439336, 0.397099], [0.439336, 1.09494, 0.122837], [0.397099, 0.122837, 1.07006]],
    ]
    assert np.abs(inverse.H - printed).max() < 6e-6
    assert inverse.holonomic


# --- Chapter IV --------------------------------------------------------------------------------------------


def planar(bodies: list[kic.Body], places: np.ndarray, joints: list[str], tip) -> kic.Mechanism:
    """A chain of revolute joints in the plane, drawn where it stands."""
    chain = ["ground", *(b.name for b in bodies)]
    made = [
        kic.Joint(name, "revolute", (chain[k], chain[k + 1]), at=(*places[k], 0), axis=(0, 0, 1))
        for k, name in enumerate(joints)
    ]
    points = [kic.Point(name, chain[-1], at=(*at, 0)) for name, at in tip.items()]
    return kic.Mechanism("planar", bodies, made, points=points)


def five_bar() -> kic.Configuration:
    """Appendix C cut at the ground pivot h: links of 12, 24, 24, 12 in, mass in the second only."""
    lengths, angles = [12, 24, 24, 12], np.deg2rad([70, 35, -65, -90])
    steps = (lengths * np.array([np.cos(angles), np.sin(angles)])).T
    places = np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])
    mass = 2 / 386.4
    centre = (*(places[1] + steps[1] / 2), 0)
    none = {"mass": 0.0, "inertia": (0, 0, 0)}
    bodies = [
        kic.Body("OA", **none),
        kic.Body("AC", mass=mass, com=centre, inertia=(12 * mass, 12 * mass, 12 * mass)),
        kic.Body("CB", **none),
        kic.Body("Bh", **none),
    ]
    return planar(bodies, places[:4], ["A1", "A2", "A3", "A4"], {"h": places[4]}).at()


def test_five_bar_of_appendix_c() -> None:
    """(4-11) to (4-41): the loop closed by hand, numbers of Table C-3 recomputed by the reference."""
    c = five_bar()
    # w = (α, e): the first joint, then the end of the chain
    first, end = c.coefficients("A1"), c.coefficients(["h.x", "h.y", "Bh.angle"])
    G = end.G
    close(G[0], [8.709240967023593, 19.985552416454492, 33.751386888879594, 12.0])
    w = first.stack(end)
    close(w.G[0], [1, 0, 0, 0])  # (4-11), (4-16)
    assert not w.H[0].any()
    phi = w.inverse()
    # (4-18): the blocks, the lower left with its minus sign
    K = np.linalg.inv(G[:, 1:])
    close(phi.G, np.block([[np.eye(1), np.zeros((1, 3))], [-K @ G[:, :1], K]]))
    # (4-23): only the planes of β, and only with [G_β^e]⁻¹
    close(phi.H[1:], -kic.products.quadratic(kic.products.dot(K, end.H), phi.G))
    d = c.dynamics().transfer(phi)  # (4-24) to (4-28)
    mill = 1e3 * d.I
    assert mill[0] == pytest.approx(
        [411.028653568545, -5.733750914062786, 12.296068515685658, 68.80501096875338]
    )
    assert mill[3, 3] == pytest.approx(37.175009297673355)
    assert 1e3 * d.P[0, 0, 0] == pytest.approx(303.3753248710431)
    assert 1e3 * d.P[1, 2, 3] == pytest.approx(-0.16891247080762117)  # printed with the wrong sign
    assert 1e3 * d.P[3, 3] == pytest.approx(
        [18.953889248886266, 2.4186083088969075, 2.026949649691452, -108.74536441563059]
    )
    # (4-30), (4-31): y = (first joint, last angle); h stands still, and its bearing holds it
    y = ["A1", "Bh.angle"]
    held = c.dynamics().transfer(phi.columns_of(y), left=phi)
    qd, qdd = [2.0, 3.0], [1.0, 0.5]
    T = held.inverse_dynamics(qd, qdd)
    assert held.efforts == ("A1", "h.x", "h.y", "Bh.angle")
    close(1e3 * T, [50.42657789757704, 68.82670449830805, -147.59934411248793, -825.9204539796967])
    # (4-32): the driving efforts alone
    free = c.dynamics().transfer(phi.columns_of(y))
    close(free.inverse_dynamics(qd, qdd), T[[0, 3]])
    assert free.holonomic
    close(free.I, free.I.T, 1e-14)
    # (4-33) to (4-41): any two joints drive; here the first and the third
    beta = phi.columns_of(y)
    drive = beta[["A1", "A3"]]
    from_q = drive.inverse()
    q = free.transfer(from_q)
    close(q.I, c.dynamics().transfer(beta @ from_q).I)
    close(q.P, c.dynamics().transfer(beta @ from_q).P, 1e-11)
    close(q.transfer(drive).P, free.P, 1e-11)


def test_forces_at_constrained_coordinates() -> None:
    """(4-31) against the equations with multipliers, in space, with rows of angular velocity held."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        m = random_tree(rng, "RRPRRR", loads=True)
        c = random_posture(rng, m)
        hand = c.coefficients(["p5", "b5.wx", "b5.wy", "b5.wz"])
        free, held = ["p5.x", "p5.y", "b5.wz"], ["p5.z", "b5.wx", "b5.wy"]
        phi = hand.inverse()
        model = c.dynamics()
        d = model.transfer(phi.columns_of(free), left=phi)
        assert d.efforts == (*[f"p5.{x}" for x in "xyz"], "b5.wx", "b5.wy", "b5.wz")
        # drive the free coordinates with given efforts, hold the others: I*φ̈ + … = G_fᵀ T_f + G_cᵀ λ
        v = phi.columns_of(free).velocity(rng.normal(size=3))
        given = rng.normal(size=3)
        C, F = hand[held], hand[free]
        bias = model.inverse_dynamics(v, 0 * v)
        matrix = np.block([[model.I, -C.G.T], [C.G, np.zeros((3, 3))]])
        right = np.concatenate([F.G.T @ given - bias, -E("pmn,m,n->p", C.H, v, v)])
        answer = np.linalg.solve(matrix, right)
        a, multipliers = answer[:6], answer[6:]
        effort = d.inverse_dynamics(F.velocity(v), F.acceleration(v, a))
        place = {name: k for k, name in enumerate(d.efforts)}
        tolerance = max(1e-11, 100 * np.finfo(float).eps * hand.condition())
        scale = np.abs(effort).max()
        assert np.abs(effort[[place[x] for x in free]] - given).max() < tolerance * scale
        assert np.abs(effort[[place[x] for x in held]] - multipliers).max() < tolerance * scale
        # with all of w left and right, the first of (4-31) with ċ = c̈ = 0
        whole = model.transfer(phi)
        columns = [whole.coordinates.index(x) for x in free]
        close(d.I, whole.I[:, columns])
        close(d.P, whole.P[:, columns][:, :, columns])


def three_legs() -> list[kic.Configuration]:
    """Appendix E: base pivots, joints and platform centre w = (2.55, 1.475) as the author rounded them."""
    w = np.array([2.55, 1.475])
    from_joints = [
        [(2.55, 1.475), (2.28, 0.0), (0.866, 0.5)],
        [(-2.55, 1.475), (-1.14, 1.975), (-0.866, 0.5)],
        [(0.0, -2.95), (-1.14, -1.975), (0.0, -1.0)],
    ]
    legs = []
    for k, arms_of_leg in enumerate(from_joints):
        places = w - np.array(arms_of_leg)
        none = {"mass": 0.0, "com": (0, 0, 0), "inertia": (0, 0, 0)}
        bodies = [
            kic.Body(
                "base", mass=0.0, com=(0, 0, 0), inertia=(0, 0, k + 1.0), inertia_exception="as printed"
            ),
            kic.Body("link", **none),
            kic.Body("plate", **none),
        ]
        legs.append(planar(bodies, places, [f"{k + 1}a", f"{k + 1}b", f"{k + 1}c"], {"w": w}).at())
    return legs


def test_three_legged_robot_of_appendix_e() -> None:
    """(4-42) to (4-64): legs transferred to their platform, added, and transferred to the base joints."""
    legs = three_legs()
    w = ["w.x", "w.y", "plate.angle"]
    inverses = [leg.coefficients(w, order=3).inverse() for leg in legs]  # (4-43), (4-44)
    close(inverses[0].G[0], [-0.6367505009794429, 0.225159300204895, -0.5133632044671605])
    total = sum(
        leg.dynamics().transfer(inverse) for leg, inverse in zip(legs, inverses, strict=True)
    )  # (4-48)
    bases = inverses[0]["1a"].stack(inverses[1]["2a"], inverses[2]["3a"])  # (4-56), (4-57)
    close(bases.H[0, 0, 1], -0.10477139020752194)  # printed -0.159
    assert total.P[2, 2, 2] == pytest.approx(2.04661, abs=5e-6)  # printed 2.045
    q = total.transfer(bases.inverse())  # (4-61) to (4-64)
    assert q.coordinates == ("1a", "2a", "3a")
    assert np.abs(q.I - np.diag([1.0, 2.0, 3.0])).max() < 1e-13
    assert np.abs(q.P).max() < 1e-13
    # the platform's motion with respect to the bases, and every joint's
    platform = bases.inverse()
    joints = inverses[1] @ platform
    back = legs[1].coefficients(w, order=3) @ joints
    for s, t in zip(back.tensors, platform.tensors, strict=True):
        close(s, t, 1e-11)


def test_resolved_motion_of_a_closed_mechanism() -> None:
    """(3-14), (3-16), (3-46) leg by leg, from m.at(...), and from the clock: a plate on a path in time."""
    m, legs = kic.load("three-legged-robot"), three_legs()
    w, joints = ["w.x", "w.y", "platform.angle"], ["A1", "B1", "C1", "A2", "B2", "C2", "A3", "B3", "C3"]
    here = m.at()
    start = np.array([here.value(name) for name in w])
    rng = np.random.default_rng(5)
    first, second, third = rng.normal(size=(3, 3))
    asked = here.coefficients(joints, order=3, wrt=w)
    rates = asked.velocity(first)
    accelerations = asked.acceleration(first, second)
    jerks = asked.jerk(first, second, third)
    for k, leg in enumerate(legs):
        inverse = leg.coefficients(["w.x", "w.y", "plate.angle"], order=3).inverse()
        own = slice(3 * k, 3 * k + 3)
        close(inverse.velocity(first), rates[own])
        close(inverse.acceleration(first, second), accelerations[own])
        close(inverse.jerk(first, second, third), jerks[own], 1e-11)
        # as printed: [G]⁻¹ of what is left of the hand's motion
        u = leg.coefficients(["w.x", "w.y", "plate.angle"], order=3)
        v = np.linalg.solve(u.G, first)
        a = np.linalg.solve(u.G, second - E("pmn,m,n->p", u.H, v, v))
        close(a, accelerations[own])
        weighted = u.H + 2 * u.H.swapaxes(1, 2)
        right = third - E("pmn,m,n->p", weighted, a, v) - E("plmn,l,m,n->p", u.D, v, v, v)
        close(np.linalg.solve(u.G, right), jerks[own], 1e-11)
    # joint angles on a path q(t) by closing, differentiated in time to eighth order
    t = 4e-3 * np.arange(-4, 5)[:, None]
    path = m.at(
        dict(zip(w, (start + t * first + t**2 / 2 * second + t**3 / 6 * third).T, strict=True)), near=here
    )
    angles = np.stack([path.value(name) for name in joints], axis=-1)
    found = np.linalg.solve(np.vander(t[:, 0] / 4e-3, 9, increasing=True), angles)
    close(found[1] / 4e-3, rates, 1e-10)
    close(2 * found[2] / 4e-3**2, accelerations, 1e-8)
    close(6 * found[3] / 4e-3**3, jerks, 1e-6)
    # the way back: what the driven joints do gives the plate's motion again
    base = [0, 3, 6]
    plate = here.coefficients(w, order=3)
    close(plate.velocity(rates[base]), first)
    close(plate.acceleration(rates[base], accelerations[base]), second)
    close(plate.jerk(rates[base], accelerations[base], jerks[base]), third, 1e-11)


def test_a_platform_on_legs_of_six_joints() -> None:
    """(4-48) to (4-54): the platform typed in (v, ω), its legs added, against one mechanism that has all."""
    rng = np.random.default_rng(3)
    m = random_tree(rng, "RRRRRR")
    c = random_posture(rng, m)
    w = ["b5.x", "b5.y", "b5.z", "b5.wx", "b5.wy", "b5.wz"]
    bare = [*m.bodies[:5], kic.Body("b5", mass=0.0, com=m.bodies[5].com, inertia=(0, 0, 0))]
    leg = kic.Mechanism("leg", bare, m.joints, points=m.points, gravity=m.gravity).at(c._phi)
    platform = m.bodies[5]
    R = c.pose("b5").rotation.as_matrix()
    II = R @ np.array(platform.inertia) @ R.T
    I = np.zeros((6, 6))
    I[:3, :3], I[3:, 3:] = platform.mass * np.eye(3), II
    P = np.zeros((6, 6, 6))
    ix, iy, iz = II.T  # the columns of II (4-53)
    zero = np.zeros(3)
    P[3, 3:, 3:] = np.array([zero, iz, -iy]).T  # (4-52)
    P[4, 3:, 3:] = np.array([-iz, zero, ix]).T
    P[5, 3:, 3:] = np.array([iy, -ix, zero]).T
    typed = kic.Dynamics(w, I, P, [*(platform.mass * np.array(m.gravity)), 0, 0, 0], holonomic=False)
    inverse = leg.coefficients(w).inverse()
    found, want = leg.dynamics().transfer(inverse) + typed, c.dynamics().transfer(inverse)
    tolerance = max(1e-12, 100 * np.finfo(float).eps * leg.coefficients(w).condition())
    close(found.I, want.I, tolerance)
    close(found.load, want.load, tolerance)
    close(found.P + found.P.swapaxes(1, 2), want.P + want.P.swapaxes(1, 2), tolerance)
    qd, qdd = rng.normal(size=(2, 6))
    close(found.inverse_dynamics(qd, qdd), want.inverse_dynamics(qd, qdd), tolerance)
    assert not found.holonomic


@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2), (0,)])
def test_results_in_batches(leg, batch) -> None:
    """Every member equals the single configuration."""
    rng = np.random.default_rng(4)
    m = arm(CASE["chain"], hand=CASE["P_local"])
    c = m.at(np.array(CASE["phi"]) + 0.1 * rng.normal(size=(*batch, 6)))
    inverse = c.coefficients(HAND, order=3).inverse()
    d = c.dynamics().transfer(inverse)
    elbow = c.coefficients("l3", order=3) @ inverse
    assert inverse.D.shape == (*batch, 6, 6, 6, 6)
    assert d.P.shape == (*batch, 6, 6, 6)
    assert d.load.shape == (*batch, 6)
    assert elbow.batch == batch
    for index in np.ndindex(batch):
        alone = m.at(c._phi[index])
        back = alone.coefficients(HAND, order=3).inverse()
        one = alone.dynamics().transfer(back)
        for s, t in ((inverse.D, back.D), (d.P, one.P), (elbow.H, (alone.coefficients("l3") @ back).H)):
            close(s[index], t, 1e-11)
