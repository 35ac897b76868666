"""Time-optimal motions within limits of actuators, against linear programs in z = ṡ² and the efforts."""

import numpy as np
import pytest
import scipy.sparse as sparse
from raising import raises
from scipy.optimize import linprog

import kic

# the programs agree to the tolerance of their solver, 1e-7; the times must agree to 0.2 %
TIME_RTOL = 2e-3
HELD_RTOL = 1e-9


def on_path(m, path, s, near):
    """Return q', q'' at both ends of intervals (L, 2, M), configurations (L + 1,), and coordinates."""
    pieces = path.pieces.refined(s)
    first, second = (np.stack(pieces.end_derivatives(k), axis=1) for k in (1, 2))
    motion = path.on(m, s, near=near)
    return first, second, motion.configuration, motion.wrt


def both(a):
    return np.stack([a[:-1], a[1:]], axis=1)


def program(m, best, path, efforts, rates, near=None):
    """Return z (L + 1,) of the linear program with the greatest speeds, on the grid of a motion.

    `efforts` and `rates` are limits of magnitudes by name. The efforts of all actuators are unknowns at both
    ends of each interval, where z' is constant.
    """
    s, names = best.s, list(efforts)
    first, second, c, wrt = on_path(m, path, s, near)
    L, size, A = len(s) - 1, first.shape[2], len(names)
    d = c.dynamics(wrt=wrt)
    inertia, product, load = both(d.I), both(d.P), both(d.load)
    moved = np.einsum("lemn,len->lem", inertia, first)
    bent = np.einsum("lemn,len->lem", inertia, second) + np.einsum(
        "lekab,lea,leb->lek", product, first, first
    )
    G = both(c.coefficients(names, order=1, wrt=wrt).G)
    # z' / 2 = s̈: moved s̈ + bent z − load = Gᵀ T
    z, tau = sparse.lil_matrix((2 * L * size, L + 1)), []
    for k in range(L):
        for e in (0, 1):
            at = slice((2 * k + e) * size, (2 * k + e + 1) * size)
            half = moved[k, e] / (2 * (s[k + 1] - s[k]))
            z[at, k], z[at, k + 1] = -half[:, None], half[:, None]
            z[at, k + e] = z[at, k + e].toarray() + bent[k, e][:, None]
            tau.append(-G[k, e].T)
    most = np.tile([efforts[name] for name in names], 2 * L)
    top = np.full(L + 1, np.inf)
    for name, limit in rates.items():
        turn = np.einsum("lem,lem->le", both(c.coefficients(name, order=1, wrt=wrt).G[:, 0]), first)
        allowed = (limit / np.maximum(np.abs(turn), 1e-12)) ** 2
        top[:-1], top[1:] = np.minimum(top[:-1], allowed[:, 0]), np.minimum(top[1:], allowed[:, 1])
    top[[0, -1]] = 0.0
    found = linprog(
        np.concatenate([-np.ones(L + 1), np.zeros(2 * L * A)]),
        A_eq=sparse.hstack([z, sparse.block_diag([sparse.coo_array(block) for block in tau])]).tocsr(),
        b_eq=load.reshape(-1),
        bounds=[*((0, t) for t in top), *zip(-most, most, strict=True)],
    )
    assert found.success
    return found.x[: L + 1]


def check(m, path, efforts, rates, near=None, grid=81, **given):
    """Check the time-optimal motion against the linear program, and that efforts within limits exist."""
    given = {"effort_limits": efforts, **given}
    best = kic.trajectory.fastest(path, m, rate_limits=rates or None, near=near, grid=grid, **given)
    z = program(m, best, path, efforts, rates, near)
    v = np.sqrt(np.maximum(z, 0.0))
    time = float((2 * np.diff(best.s) / (v[1:] + v[:-1])).sum())
    assert abs(best.t[-1] / time - 1) < TIME_RTOL
    assert best.slack.min() > -HELD_RTOL
    first, second, c, wrt = on_path(m, path, best.s, near)
    names, L = list(efforts), len(best.s) - 1
    d, G = c.dynamics(wrt=wrt), c.coefficients(names, order=1, wrt=wrt).G
    most = np.array([efforts[name] for name in names])
    for k, e in [(k, e) for k in range(0, L, 7) for e in (0, 1)]:
        qd, qdd = first[k, e] * best.speed[k + e], first[k, e] * best.acceleration[k]
        qdd = qdd + second[k, e] * best.speed[k + e] ** 2
        need = d.I[k + e] @ qdd + (d.P[k + e] @ qd) @ qd - d.load[k + e]
        # the smallest factor on the limits at which efforts exist
        factor = linprog(
            [1.0, *np.zeros(len(names))],
            A_eq=np.column_stack([np.zeros(len(need)), G[k + e].T * most]) / np.abs(need).max(),
            b_eq=need / np.abs(need).max(),
            A_ub=np.block([[-np.ones((2 * len(names), 1)), np.kron([[1.0], [-1.0]], np.eye(len(names)))]]),
            b_ub=np.zeros(2 * len(names)),
            bounds=[(0, None)] + [(None, None)] * len(names),
        )
        assert factor.fun < 1 + HELD_RTOL
    for name, limit in rates.items():
        turn = np.einsum("lem,lem->le", both(c.coefficients(name, order=1, wrt=wrt).G[:, 0]), first)
        assert (np.abs(turn) * both(best.speed)).max() < limit * (1 + HELD_RTOL)
    return best


def five_bar_path(m):
    p = m.at().value("tip")
    return kic.trajectory.line({"tip.x": p[0], "tip.y": p[1]}, {"tip.x": p[0] - 1.5, "tip.y": p[1] - 1.5})


def test_a_five_bar_along_a_line_of_its_tip():
    m = kic.load("five-bar")
    best = check(m, five_bar_path(m), {"A": 1500.0, "E": 2000.0}, {"A": 5.0, "E": 4.0})
    assert {"effort of A", "velocity of A"} & set(best.binding)


def test_limits_of_other_rows_bind():
    """A limit of a joint between links, of a point, and of one actuator alone."""
    m = kic.load("five-bar")
    path = five_bar_path(m)
    best = kic.trajectory.fastest(path, m, effort_limits={"A": 2000.0}, rate_limits={"B": 2.0, "tip": 30.0})
    assert best.names == ("velocity of B", *(f"velocity of tip[{k}]" for k in range(3)), "effort of A")
    c = best.trajectory.on(m, best.t).of("B")
    assert abs(np.abs(c.qd).max() - 2.0) < 2.0 * HELD_RTOL
    slow = kic.trajectory.fastest(path, m, effort_limits=9e9, acceleration_limits={"A": 10.0, "tip.x": 200.0})
    assert set(slow.binding) <= {"acceleration of A", "acceleration of tip.x"}


def test_more_actuators_than_degrees_of_freedom():
    """A third motor, at the joint between links, makes the five-bar faster."""
    m = kic.load("five-bar")
    path, limits = five_bar_path(m), {"A": 1500.0, "E": 1500.0, "B": 1500.0}
    best = check(m, path, limits, {}, actuators=["A", "E", "B"])
    two = kic.trajectory.fastest(path, m, effort_limits={"A": 1500.0, "E": 1500.0}, grid=81)
    assert best.t[-1] < 0.99 * two.t[-1]
    assert best.binding[0] == "share of effort limits"
    assert "share of effort limits" in str(best.summary())


def test_an_actuator_without_limit_takes_its_share():
    m = kic.load("five-bar")
    path = five_bar_path(m)
    free = kic.trajectory.fastest(
        path, m, effort_limits={"A": 1500.0, "B": 1500.0}, actuators=["A", "E", "B"], grid=41
    )
    bounded = {"A": 1500.0, "B": 1500.0, "E": 1e6}
    far = kic.trajectory.fastest(path, m, effort_limits=bounded, actuators=["A", "E", "B"], grid=41)
    assert abs(free.t[-1] / far.t[-1] - 1) < 1e-9


def test_one_sided_limits():
    """Efforts that only push need the actuators against each other."""
    m = kic.load("five-bar")
    path, names = five_bar_path(m), ["A", "E", "B"]
    wide = [[-1500.0] * 3, [1500.0] * 3]
    narrow = [[-1500.0, -1500.0, 0.0], [1500.0] * 3]
    both_ways, pushing = (
        kic.trajectory.fastest(path, m, effort_limits=x, actuators=names, grid=41) for x in (wide, narrow)
    )
    assert pushing.t[-1] > both_ways.t[-1]


def test_names_that_have_no_limit_here():
    m = kic.load("five-bar")
    path = five_bar_path(m)
    for key in ("effort_limits", "rate_limits"):
        with raises(kic.InputError, key=key):
            kic.trajectory.fastest(path, m, **{"effort_limits": 1e4, key: True})


def test_declared_limits():
    m = kic.load("five-bar")
    path, limits = five_bar_path(m), {"A": 1500.0, "E": 2000.0}
    declared = m
    for name, limit in limits.items():
        declared = declared.replace(name, effort_limits=limit, rate_limits=(-5.0, 4.0))
    assert declared.effort_limits == {name: (-x, x) for name, x in limits.items()}
    given = {"effort_limits": limits, "rate_limits": dict.fromkeys(limits, (-5.0, 4.0))}
    for find in (
        lambda m, **x: kic.trajectory.fastest(path, m, **x, grid=21).trajectory,
        lambda m, **x: kic.trajectory.uniform(path, m, **x),
    ):
        assert find(declared, effort_limits=True, rate_limits=True).duration == find(m, **given).duration
    c = declared.at()
    one, other = (
        c.distribute([3.0, 1.0], actuators=["A", "E", "B"], criterion=[1.0] * 3, effort_limits=x)
        for x in (True, [1500.0, 2000.0, np.inf])
    )
    assert np.array_equal(one.effort, other.effort)


@pytest.mark.slow
def test_two_arms_that_hold_an_object():
    m = kic.load("two-arms")
    end = dict(zip(m.coordinates, [0.3, 0.2, -0.3, 0.2, 0.1, -0.2], strict=True))
    path = kic.trajectory.line(dict.fromkeys(end, 0.0), end)
    limits = {name: 60.0 if name[0] in "ABC" else 15.0 for name in m.actuators}
    rates = {"C2": 1.2}
    best = check(m, path, limits, rates, actuators=m.actuators, grid=41)
    assert set(best.binding) <= {"velocity of C2", "share of effort limits"}


@pytest.mark.slow
def test_a_platform_with_limits_of_its_legs():
    """The path is that of the pose of the platform, the limits are those of efforts and rates of the legs."""
    m = kic.load("gough-stewart")
    c = m.at()
    start = {f"platform.{x}": float(c.value(f"platform.{x}")) for x in "xyz"} | {
        "platform.euler_xyz": np.zeros(3)
    }
    moves = [0.12, -0.08, 0.05, np.array([0.1, -0.15, 0.2])]
    end = {name: start[name] + move for name, move in zip(start, moves, strict=True)}
    path = kic.trajectory.line(start, end)
    best = check(m, path, dict.fromkeys(m.coordinates, 400.0), {"L1": 0.4, "L3": 0.35})
    assert "velocity of L3" in best.binding or "velocity of L1" in best.binding


@pytest.mark.slow
def test_a_redundant_arm_with_limits_of_its_joints():
    """The flange moves along a line, and four joints as they should; all joints have limits."""
    m = kic.load("panda")
    near = m.at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    names = [*(f"flange.{x}" for x in "xyz"), "joint3", "joint5", "joint6", "joint7"]
    start = {name: float(near.value(name)) for name in names}
    moves = [0.1, 0.25, -0.1, 0.2, 0.0, -0.1, 0.3]
    path = kic.trajectory.line(start, {n: start[n] + x for n, x in zip(names, moves, strict=True)})
    efforts = dict(zip(m.coordinates, [87.0] * 4 + [12.0] * 3, strict=True))
    rates = dict(zip(m.coordinates, [2.175] * 4 + [2.61] * 3, strict=True))
    check(m, path, efforts, rates, near=near)


@pytest.mark.slow
def test_actuators_that_only_pull_or_push() -> None:
    """Limits of 0 and ∞ equal those of 0 and a large number."""
    m = kic.load("four-bar")
    path = kic.trajectory.line({"A": 1.2}, {"A": 2.2})
    for most in (np.inf, 1e6):
        with raises(kic.InputError):
            limits = {"A": (0.0, most), "D": (0.0, most)}
            kic.trajectory.fastest(
                path, m, effort_limits=limits, actuators=["A", "D"], acceleration_limits=100.0
            )
    found = [
        kic.trajectory.fastest(
            path, m, effort_limits={"A": (-9.0, 9.0), "D": (0.0, most)}, acceleration_limits=100.0,
            actuators=["A", "D"],
        ).t[-1]
        for most in (np.inf, 1e6)
    ]  # fmt: skip
    assert abs(found[0] / found[1] - 1) < 1e-6


@pytest.mark.slow
def test_dependent_actuators_without_limits_hide_no_others() -> None:
    m = kic.load("horn-two-link")
    path, same = kic.trajectory.line([0.0, 0.3], [0.4, 1.0]), ["shoulder", "link1.angle", "elbow"]
    given = {"acceleration_limits": 100.0, "effort_limits": {"elbow": 8.0}}
    known = kic.trajectory.fastest(path, m, **given).t[-1]
    assert abs(kic.trajectory.fastest(path, m, actuators=same, **given).t[-1] / known - 1) < TIME_RTOL


@pytest.mark.slow
def test_declared_limits_are_those_of_the_actuators() -> None:
    """Of the declared actuators, or of those that are named."""
    m = kic.load("five-bar")
    for joint, limit in (("A", 20.0), ("E", 5.0)):
        m = m.replace(joint, effort_limits=limit)
    path = kic.trajectory.line({"A": 1.2, "E": 1.6}, {"A": 1.3, "E": 1.7})
    for own, limits in ((("A", "C"), {"A": 20.0}), (("A", "E"), {"A": 20.0, "E": 5.0})):
        given = {"acceleration_limits": 900.0}
        first = kic.trajectory.fastest(path, m.replace(actuators=own), effort_limits=True, **given)
        named = kic.trajectory.fastest(path, m, effort_limits=True, actuators=own, **given)
        known = kic.trajectory.fastest(path, m, effort_limits=limits, actuators=own, **given)
        assert first.t[-1] == named.t[-1] == known.t[-1]


SPELLINGS = (
    lambda names, x: {name: x for name in names},
    lambda names, x: {name: (-x, x) for name in names},
    lambda names, x: [x] * len(names),
    lambda names, x: [[-x] * len(names), [x] * len(names)],
    lambda names, x: [[-x], [x]],
    lambda names, x: x,
)


def test_limits_have_one_spelling_everywhere():
    m, motors = kic.load("five-bar"), ("A", "E", "B")
    c, path = m.at(), five_bar_path(m)
    contacts = kic.ContactSet([[-1.0, 0, 0], [1, 0, 0]], [[1.0, 0, 0], [-1, 0, 0]], "friction", mu=0.5,
                              plane=[0, 0, 1])  # fmt: skip
    J = np.zeros((4, 2))
    J[0, 0] = J[2, 1] = 1.0
    asked = (
        lambda of: c.distribute([3.0, 1.0], actuators=motors, criterion="limits",
                                effort_limits=of(motors)).effort,
        lambda of: kic.trajectory.fastest(path, m, effort_limits=of(m.coordinates), actuators=m.coordinates,
                                          grid=21).t[-1],
        lambda of: m.simulate(0.01, controller=kic.controllers.Sampled(
            lambda t, now: [9e3, -9e3], 5e-3, effort_limits=of(m.coordinates))).control.effort,
        lambda of: kic.grip_forces(contacts, [0, -6, 0], jacobian=J, joints=("l", "r"),
                                   effort_limits=of(("l", "r"))).effort,
        lambda of: kic.metrics.force("tip.x", effort_limits=of(m.coordinates), load=False)(c),
        lambda of: c.ellipsoid(["tip.x", "tip.y"], kind="force", effort_limits=of(m.coordinates)).semi_axes,
    )  # fmt: skip
    for k, ask in enumerate(asked):
        results = [ask(lambda names, s=s: s(names, 1500.0)) for s in SPELLINGS]
        for other in results[1:]:
            assert np.array_equal(results[0], other), k
        for wrong in ({"nose": 1.0}, {}.fromkeys(("A", "l"), (2.0, 1.0)), [1.0] * 7, np.nan, "a"):
            with pytest.raises((kic.InputError, kic.UnknownNameError)):
                ask(lambda names, x=wrong: x)
    # of one sign, for each member of a batch
    pull = np.array([[-9.0, -9.0, -9.0], [-1.0, 0.0, -2.0]])
    d = c.distribute(
        [0.0, 0.0], actuators=motors, effort_limits=np.stack([-9.0 + 0 * pull, pull[1] + 9.5 + 0 * pull])
    )
    assert d.batch == (2,)


@pytest.mark.parametrize("criterion", ["limits", [1.0, 2.0, 3.0]])
def test_a_motion_keeps_its_choice_of_efforts(criterion):
    m = kic.load("five-bar")
    line = kic.trajectory.line({"A": 1.2, "E": 1.6}, {"A": 1.4, "E": 1.5}, 0.3)
    motors, limits = ("A", "E", "B"), {"A": 9e3, "E": (-4e3, 4e3), "B": 2e3}
    motion = line.on(m, 7, actuators=motors, criterion=criterion, effort_limits=limits)
    path = motion.configuration
    G = path.coefficients(motors, order=1).G
    T_q = path.inverse_dynamics(motion.motion.qd, motion.motion.qdd)
    w = [1 / 9e3**2, 1 / 4e3**2, 1 / 2e3**2] if criterion == "limits" else criterion
    W = np.diag(1 / np.array(w))
    expected = np.einsum("ab,tbm,tmn,tn->ta", W, G, np.linalg.inv(np.einsum("tai,ab,tbj->tij", G, W, G)), T_q)
    scale = np.abs(expected).max()
    assert np.abs(motion.effort() - expected).max() < 1e-11 * scale
    assert np.abs(motion.effort(criterion=[1.0] * 3) - expected).max() > 1e-3 * scale
    table = motion.table(["efforts", "powers"]).to_dataframe()
    for k, name in enumerate(motors):
        assert np.array_equal(table[f"{name}.effort"], motion.effort()[:, k])
        assert np.array_equal(table[f"{name}.power"], motion.power()[:, k])
    speed = kic.trajectory.at_speed(path, motion.motion.q[-1] - motion.motion.q[0], actuators=motors,
                                    criterion=criterion, effort_limits=limits)  # fmt: skip
    own = speed.effort(criterion=criterion, effort_limits=limits)
    assert np.array_equal(speed.effort(), own)
