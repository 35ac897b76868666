"""More actuators than degrees of freedom, against the KKT equations, enumeration and internal loads."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from actuation_cases import CASES, OBJECT, TRUNK, Case
from raising import raises, refuses
from sampling import STEP, mismatch, stepped

import kic
from kic.mechanism.configuration import Configuration
from kic.numerics.convex_programs import largest_feasible_share, minimize_largest_share, nearest

E = np.einsum
MOTORS = ["B1", "C1", "B2", "C2"]
HAND = ["A1", "B1", "A2", "B2"]
every_case = pytest.mark.parametrize("name", CASES)
loose_cases = pytest.mark.parametrize("name", [x for x in CASES if x != "platform"])
# few enough to enumerate which bounds are met
small_cases = pytest.mark.parametrize("name", [x for x in CASES if x not in ("arms", "platform")])


def kkt(G: np.ndarray, W: np.ndarray, demand: np.ndarray) -> np.ndarray:
    """Stationary point of TᵀWT + λᵀ(GᵀT − T_u): (4-82) to (4-84)."""
    A, M = G.shape
    matrix = np.block([[2 * W, G], [G.T, np.zeros((M, M))]])
    return np.linalg.solve(matrix, np.concatenate([np.zeros(A), demand]))[:A]


# --- closed forms ------------------------------------------------------------------------------------------


@every_case
def test_closed_forms_solve_the_equations_with_multipliers(name: str) -> None:
    s = Case(name)
    vector, matrix = s.rng.uniform(0.1, 10, s.A), s.weights()
    laws = [
        ("minimum norm", np.eye(s.A), {}),
        ("limits", np.diag(1 / (1e6 * s.limits) ** 2), {"effort_limits": 1e6 * s.limits}),
        (vector, np.diag(vector), {}),
        (matrix, matrix, {}),
    ]
    for criterion, W, limits in laws:
        d = s.distribute(criterion, **limits)
        W = W / np.abs(W).max()
        scale = np.linalg.cond(s.G) * np.linalg.cond(W)
        assert mismatch(d.effort, kkt(s.G, W, s.demand)) < 1e-14 * scale
        assert s.missed(d.effort) < 1e-12
        assert np.abs(d.internal).max() <= 1e-12 * np.abs(d.effort).max()
        assert not d.at_limit.any()
    assert d.criterion == "weights"


@every_case
def test_minimum_norm_as_printed(name: str) -> None:
    """(4-85): T_q = G (GᵀG)⁻¹ T_u."""
    s = Case(name, 1)
    printed = s.G @ np.linalg.solve(s.G.T @ s.G, s.demand)
    assert mismatch(s.distribute().effort, printed) < 1e-15 * np.linalg.cond(s.G) ** 2 + 1e-13


@every_case
def test_no_other_efforts_are_smaller(name: str) -> None:
    s = Case(name, 2)
    W = s.weights()
    T = s.distribute(W).effort
    N = s.c.internal_loads(actuators=s.actuators, wrt=s.wrt).basis
    others = T + s.rng.normal(size=(200, N.shape[1])) @ N.T
    least, found = E("i,ij,j", T, W, T), E("bi,ij,bj->b", others, W, others)
    assert (found >= least * (1 - 1e-13)).all()


@every_case
def test_the_model_seen_from_the_actuators(name: str) -> None:
    """(4-87) to (4-90), and (4-86): a left inverse of (4-78)."""
    s = Case(name, 3)
    d = s.c.dynamics(wrt=s.wrt)
    printed = np.linalg.solve(s.G.T @ s.G, s.G.T).T
    limit = 1e-15 * np.linalg.cond(s.G) ** 2 + 1e-12
    seen = s.c.actuator_dynamics(actuators=s.actuators, wrt=s.wrt)
    assert (seen.efforts, seen.coordinates) == (tuple(s.actuators), d.coordinates)
    assert mismatch(seen.I, printed @ d.I) < limit
    assert mismatch(seen.P, E("qk,kab->qab", printed, d.P)) < limit
    assert mismatch(seen.load, printed @ d.load) < limit
    assert mismatch(seen.damping, printed @ d.damping) < limit
    assert seen.holonomic == d.holonomic
    qd, qdd = s.rng.normal(size=(2, s.M))
    W = s.weights()
    for criterion, more in (("minimum norm", {}), ("limits", {"effort_limits": 1e6 * s.limits}), (W, {})):
        seen = s.c.actuator_dynamics(actuators=s.actuators, criterion=criterion, wrt=s.wrt, **more)
        s.demand = d.inverse_dynamics(qd, qdd)
        assert mismatch(seen.inverse_dynamics(qd, qdd), s.distribute(criterion, **more).effort) < limit


def test_dampers_and_applied_forces_go_along() -> None:
    m = kic.load("walking-machine")
    joints = [replace(j, damping=(0.3,)) if j.name in ("B1", "C2") else j for j in m.joints]
    m = replace(m, joints=joints, forces=[kic.Force("push", "load", (0.0, -5.0, 0.0))])
    c, motors = m.at(), MOTORS
    qd, qdd = np.random.default_rng(0).normal(size=(2, 3))
    for applied in (None, {"push": (30.0, 1.0, 0.0)}):
        T = c.dynamics(wrt=TRUNK, applied=applied).inverse_dynamics(qd, qdd)
        seen = c.actuator_dynamics(actuators=motors, wrt=TRUNK, applied=applied)
        effort = c.distribute(T, actuators=motors, wrt=TRUNK).effort
        assert mismatch(seen.inverse_dynamics(qd, qdd), effort) < 1e-12
    assert np.abs(seen.damping).max() > 0.1


# --- the two-fingered hand by hand -------------------------------------------------------------------------


def test_two_fingered_hand_as_in_the_source() -> None:
    """(4-42) to (4-60) with w = u: both fingers turned into the object's coordinates, added to the object."""
    s = Case("hand", 5)
    parts = {b.name: b for b in s.m.bodies}
    joints = {j.name: j for j in s.m.joints}
    bare = kic.Body("object", mass=0.0, com=parts["object"].com, inertia=(0, 0, 0))
    model, G, H = [], [], []
    for i in (1, 2):
        chain = [f"A{i}", f"B{i}", f"C{i}"]
        bodies = [parts[f"proximal{i}"], parts[f"distal{i}"], bare]
        finger = kic.Mechanism("finger", bodies, [joints[x] for x in chain], gravity=s.m.gravity)
        f = finger.at([float(s.c.value(x)) for x in chain])
        assert f.value("object.angle") == pytest.approx(float(s.c.value("object.angle")), abs=1e-12)
        inverse = f.coefficients(OBJECT).inverse()
        model.append(f.dynamics().transfer(inverse))
        motors = inverse[chain[:2]]
        G.append(motors.G)
        H.append(motors.H)
    plane = kic.Joint("o", "planar", ("ground", "object"), at=(0, 0, 0), axis=(1, 0, 0), axis2=(0, 1, 0))
    free = kic.Mechanism("object", bodies=[parts["object"]], joints=[plane], gravity=s.m.gravity)
    o = free.at({row: float(s.c.value(row)) for row in OBJECT})
    model.append(o.dynamics().transfer(o.coefficients(OBJECT).inverse()))
    found = s.c.dynamics(wrt=OBJECT)
    by_hand = sum(model)
    assert mismatch(by_hand.I, found.I) < 1e-12  # (4-77)
    assert mismatch(by_hand.P, found.P) < 1e-11
    assert mismatch(by_hand.load, found.load) < 1e-12
    G, H = np.concatenate(G), np.concatenate(H)
    assert mismatch(G, s.G) < 1e-12  # (4-78)
    assert mismatch(H, s.H) < 1e-11  # (4-79)
    qd, qdd = s.rng.normal(size=(2, 3))
    demand = by_hand.inverse_dynamics(qd, qdd)
    left = G @ np.linalg.inv(G.T @ G)  # (4-86)
    seen = s.c.actuator_dynamics(actuators=s.actuators, wrt=OBJECT)
    assert mismatch(seen.inverse_dynamics(qd, qdd), left @ demand) < 1e-11  # (4-87)
    assert mismatch(s.c.distribute(demand, actuators=s.actuators, wrt=OBJECT).effort, left @ demand) < 1e-11


# --- within limits -----------------------------------------------------------------------------------------


def enumerated(G, W, demand, lower, upper) -> np.ndarray | None:
    """Least TᵀWT within bounds: every set of bounds that may be met, by its own KKT equations."""
    A, M = G.shape
    best, answer = np.inf, None
    for n in range(A - M + 1):
        for met in map(list, combinations(range(A), n)):
            for sides in product((lower, upper), repeat=n):
                value = np.array([side[i] for i, side in zip(met, sides, strict=True)])
                if not np.isfinite(value).all():
                    continue
                C = np.concatenate([G, np.eye(A)[:, met]], axis=1)
                T = kkt(C, W, np.concatenate([demand, value]))
                slack = 1e-9 * np.abs(T).max()
                if (np.clip(T, lower - slack, upper + slack) != T).any():
                    continue
                if (size := T @ W @ T) < best * (1 - 1e-12):
                    best, answer = size, T
    return answer


@small_cases
@pytest.mark.parametrize("seed", range(6))
def test_within_limits_it_is_the_best_of_all_sets_of_bounds_met(name: str, seed: int) -> None:
    s = Case(name, seed)
    criterion, W = (("minimum norm", np.eye(s.A)), ("limits", None), (V := s.weights(), V))[seed % 3]
    # as tight as it goes, and somewhat less
    limits = s.limits * s.least() * (1 + s.rng.uniform(0.01, 0.3))
    lower = -limits if seed < 4 else -limits * s.rng.uniform(0.6, 1.5, s.A)
    W = np.diag(1 / np.maximum(limits, -lower) ** 2) if W is None else W
    W = W / np.abs(W).max()
    want = enumerated(s.G, W, s.demand, lower, limits)
    if want is None:
        refuses(lambda: s.distribute(criterion, effort_limits=[lower, limits]), kic.LimitError)
        return
    d = s.distribute(criterion, effort_limits=[lower, limits])
    assert mismatch(d.effort, want) < 1e-11 * np.linalg.cond(s.G) * np.linalg.cond(W)
    assert s.missed(d.effort) < 1e-12
    assert (d.effort <= limits).all()
    assert (d.effort >= lower).all()
    assert ((d.effort == limits) | (d.effort == lower)).tolist() == d.at_limit.tolist()


@pytest.mark.slow
def test_limits_are_met_in_these_samples() -> None:
    met = 0
    for name in CASES:
        if name in ("arms", "platform"):
            continue
        for seed in range(3):
            s = Case(name, seed)
            met += int(s.distribute(effort_limits=1.05 * s.least() * s.limits).at_limit.sum())
    assert met > 15


@pytest.mark.parametrize("seed", range(5))
def test_twelve_motors_within_limits_satisfy_the_kkt_conditions(seed: int) -> None:
    """W T = G λ + μ, with μ only at bounds and of their signs: for a convex problem that is all."""
    s = Case("arms", seed)
    limits = s.limits * s.least() * 1.1
    W = s.weights()
    d = s.distribute(W, effort_limits=limits)
    free = ~d.at_limit
    assert d.at_limit.sum() >= 1
    assert s.missed(d.effort) < 1e-12
    force = W @ d.effort
    multipliers, *_ = np.linalg.lstsq(s.G[free], force[free], rcond=None)
    left = force - s.G @ multipliers
    assert np.abs(left[free]).max() < 1e-10 * np.abs(force).max()
    assert (left[~free] * np.sign(d.effort[~free]) <= 1e-10 * np.abs(force).max()).all()


def test_cables_only_pull() -> None:
    """A point in the plane on three cables: at least so much in each, found by hand."""
    m = kic.Mechanism(
        "cables",
        bodies=[kic.Body("slide", mass=0, com=(0, 0, 0), inertia=(0, 0, 0)),
                kic.Body("ring", mass=1, com=(0, 0, 0), inertia=(1, 1, 1))],
        joints=[kic.Joint("x", "prismatic", ("ground", "slide"), axis=(1, 0, 0)),
                kic.Joint("y", "prismatic", ("slide", "ring"), axis=(0, 1, 0))],
        points=[kic.Point("p", "ring", at=(0, 0, 0)), kic.Point("a", "ground", at=(0, 2, 0)),
                kic.Point("b", "ground", at=(-3, -4, 0)), kic.Point("c", "ground", at=(3, -4, 0))],
        distances=[kic.Distance(f"to_{x}", ("p", x)) for x in "abc"],
    )  # fmt: skip
    c, cables = m.at([0.0, 0.0]), ["to_a", "to_b", "to_c"]
    # a cable that pulls shortens its distance: efforts are ≤ 0
    pull = {"effort_limits": dict.fromkeys(cables, (-100.0, -1.0))}
    d = c.distribute([0.0, 0.0], actuators=cables, **pull)
    assert d.effort == pytest.approx([-1.6, -1.0, -1.0])
    assert d.at_limit.tolist() == [False, True, True]
    assert d.share == pytest.approx([0.016, 0.01, 0.01])
    d = c.distribute([2.4, 0.0], actuators=cables, **pull)  # along x: b gives way
    assert d.effort == pytest.approx([-0.8 * 6, -1.0, -5.0])
    least = c.distribute([2.4, 0.0], actuators=cables, criterion="least largest share", **pull)
    assert least.effort == pytest.approx(d.effort)
    loads = c.internal_loads(actuators=cables)
    assert loads.sentences() == ["Internal load 1: to_a, to_b, to_c, all of one sign."]
    # tension holds the ring: −Σ T H is positive definite for pulls
    K = loads.stiffness(d.effort)
    assert np.linalg.eigvalsh(K).min() > 0
    assert K[0, 0] == pytest.approx(4.8 / 2 + 6 / 5 * 0.64)
    # of a at most 20, of c at least 40: 1.6 (40 − 100 v) = 20 + 20 v where each gives way by v of its size
    low, high = np.array([-20.0, -100, -100]), np.array([-1.0, -1, -40])
    given = {"scale": None, "widen": pytest.approx(44 / 180), "binding": ("to_a", "to_c")}
    refuses(
        lambda: c.distribute([0, 0], actuators=cables, effort_limits=[low, high]), kic.LimitError, **given
    )


@pytest.mark.slow
@loose_cases
def test_least_largest_share(name: str) -> None:
    """Against a linear program over all efforts, and against many others: none is better in lexical order."""
    from scipy.optimize import linprog

    for seed in range(4):
        s = Case(name, 10 + seed)
        s.limits = s.limits * 3
        d = s.distribute("least largest share", effort_limits=s.limits)
        assert s.missed(d.effort) < 1e-12
        # efforts first, then the bound on all shares
        one = np.concatenate([np.diag(1 / s.limits), -np.ones((s.A, 1))], axis=1)
        other = np.concatenate([-np.diag(1 / s.limits), -np.ones((s.A, 1))], axis=1)
        program = linprog(
            np.append(np.zeros(s.A), 1.0), np.concatenate([one, other]), np.zeros(2 * s.A),
            np.column_stack([s.G.T, np.zeros(s.M)]), s.demand, bounds=(None, None), method="highs-ipm",
        )  # fmt: skip
        assert d.share.max() == pytest.approx(program.x[-1], rel=1e-7)
        assert mismatch(d.share, np.abs(d.effort) / s.limits) < 1e-14
        given = {"actuators": s.actuators, "criterion": "limits", "effort_limits": s.limits, "wrt": s.wrt}
        N = s.c.internal_loads(**given).basis
        size = 10.0 ** s.rng.uniform(-4, 0, (3000, 1)) * d.share.max()
        others = d.effort + (size * s.rng.normal(size=(3000, N.shape[1]))) @ N.T
        ranked = np.sort(np.abs(others) / s.limits, axis=1)[:, ::-1]
        mine = np.sort(d.share)[::-1]
        apart = np.abs(ranked - mine) > 1e-7
        first = np.argmax(apart, axis=1)
        each = np.arange(3000)
        beaten = apart.any(axis=1) & (ranked[each, first] < mine[first])
        # where the first that differs is smaller, an earlier one has grown, if by less than that
        assert (ranked[beaten, 0] > mine[0]).all()


def test_least_largest_share_of_one_internal_load_by_brute_force() -> None:
    for name in ("hand", "walker", "arms, seven"):
        s = Case(name, 4)
        s.limits = s.limits * 3
        d = s.distribute("least largest share", effort_limits=s.limits)
        given = {"actuators": s.actuators, "criterion": "limits", "effort_limits": s.limits, "wrt": s.wrt}
        N = s.c.internal_loads(**given).basis[:, 0]
        start = s.distribute().effort
        # pieces of |start + N z| / limit cross where two of them are equal: look there
        z = [-t / n for t, n in zip(start, N, strict=True)]
        for i, k in combinations(range(s.A), 2):
            for sign in (1, -1):
                a = N[i] / s.limits[i] - sign * N[k] / s.limits[k]
                z.append((sign * start[k] / s.limits[k] - start[i] / s.limits[i]) / a)
        largest = (np.abs(start + np.outer(z, N)) / s.limits).max(axis=1)
        assert d.share.max() == pytest.approx(largest.min(), rel=1e-12)
        assert mismatch(d.effort, start + z[int(np.argmin(largest))] * N) < 1e-10


def test_resting_members_converge_without_delaying_others() -> None:
    """The largest share may be that of a motor without internal load; the others are still minimized."""
    start, N = np.array([9.0, 4.0, 0.0]), np.array([[0.0], [1.0], [-1.0]])
    limits = np.array([10.0, 10.0, 10.0])
    assert minimize_largest_share(start, N, -limits, limits) == pytest.approx([9.0, 2.0, 2.0])
    # two pairs that do not touch: the lesser one is shared, too
    start = np.array([8.0, 0.0, 2.0, 0.0])
    N = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    ten = np.full(4, 10.0)
    assert minimize_largest_share(start, N, -ten, ten) == pytest.approx([4, 4, 1, 1])


def test_programs_at_the_edge() -> None:
    """Results are exact where bounds leave a single point or are equations."""
    one = np.ones(2)
    only = nearest(np.array([3.0, 1.0]), np.array([[1.0], [-1.0]]), -2 * one, 2 * one)
    assert only.tolist() == [2.0, 2.0]
    assert nearest(np.array([3.0, 1.0 + 1e-9]), np.array([[1.0], [-1.0]]), -2 * one, 2 * one) is None
    # an actuator switched off is an equation
    N = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 3)))[0]
    start = np.array([1.0, -2.0, 0.5, 0.3, -0.7])
    limits = np.array([0.0, 10.0, 0.0, 10.0, 10.0])
    T = nearest(start, N, -limits, limits)
    assert T[0] == T[2] == 0
    rows = np.linalg.qr(N, mode="complete")[0][:, 3:].T
    assert np.abs(rows @ (T - start)).max() < 1e-13
    # integers in which conditions coincide
    N = np.array([[-1.0, 1, -1], [0, -1, 1], [0, 1, -1], [1, -1, 0]])
    found = nearest(np.array([2.0, 0, 0, 1]), N, np.array([0.0, -2, 0, -1]), np.array([1.0, 0, 2, 2]))
    assert found == pytest.approx([1, 0, 0, 2], abs=1e-14)
    assert largest_feasible_share(np.zeros(2), np.zeros((2, 0)), -one, one).scale == 1.0
    assert minimize_largest_share(np.array([1.0, 1.0]), np.ones((2, 1)), one * 5, one * 4) is None


@pytest.mark.parametrize("seed", range(120))
def test_conditions_that_coincide(seed: int) -> None:
    """Small integers, where many bounds meet in one point or leave no room: every set of them, one by one."""
    rng = np.random.default_rng(seed)
    A = int(rng.integers(2, 5))
    N = rng.integers(-1, 2, size=(A, int(rng.integers(1, A)))).astype(float)
    N = N[:, np.abs(np.diag(np.linalg.qr(N)[1])) > 1e-9]
    start, upper, lower = (x.astype(float) for x in rng.integers([[-3], [0], [-2]], [[4], [3], [1]], (3, A)))
    size, answer = np.inf, None
    for n in range(A + 1):
        for met in map(list, combinations(range(A), n)):
            for sides in product((lower, upper), repeat=n):
                value = np.array([side[i] for i, side in zip(met, sides, strict=True)])
                z = np.linalg.lstsq(N[met], value - start[met], rcond=1e-12)[0]
                T = start + N @ z
                if np.abs(T - np.clip(T, lower, upper)).max() < 1e-9 and z @ z < size - 1e-12:
                    size, answer = z @ z, T
    found = nearest(start, N, lower, upper)
    assert (found is None) == (answer is None)
    if found is None:
        r = largest_feasible_share(start, N, lower, upper)
        assert r.binding
        assert r.widen > 0 if r.scale is None else r.scale < 1
    else:
        assert np.abs(found - answer).max() < 1e-12
        assert (found == np.clip(found, lower, upper)).all()


def test_unconverged_program_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def circles(*_args: object, **_more: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", circles)
    one = np.ones(2)
    with raises(kic.SingularError, room=pytest.approx(0.25)):
        nearest(np.array([3.0, 0.0]), np.array([[1.0], [-1.0]]), -2 * one, 2 * one)
    # at the edge it is not needed
    assert nearest(np.array([3.0, 1.0]), np.array([[1.0], [-1.0]]), -2 * one, 2 * one).tolist() == [2, 2]
    assert nearest(np.array([3.0, 1.5]), np.array([[1.0], [-1.0]]), -2 * one, 2 * one) is None


# --- demands that cannot be met ---------------------------------------------------------------------------


@pytest.mark.slow
@every_case
def test_infeasible_demands_report_active_limits_and_share(name: str) -> None:
    s = Case(name, 7)
    limits = s.limits * s.least() / 1.6
    for criterion in ("minimum norm", "limits", "least largest share"):
        with raises(kic.LimitError, scale=pytest.approx(1 / 1.6, rel=1e-9)) as caught:
            s.distribute(criterion, effort_limits=limits)
    binding = [x in caught.value.binding for x in s.actuators]
    assert 1 <= sum(binding) <= s.A - s.M + 1
    assert all(x in str(caught.value) for x in caught.value.binding)
    demand, scale = s.demand, caught.value.scale
    s.demand = demand * scale * (1 - 1e-9)
    assert s.distribute(effort_limits=limits).share[binding].min() > 1 - 1e-6
    s.demand = demand * scale * 1.0001
    for more, goes in ((np.where(binding, 1.01, 1.0), True), (np.where(binding, 1.0, 2.0), False)):
        if goes:
            s.distribute(effort_limits=limits * more)
        else:
            with raises(kic.LimitError, scale=pytest.approx(0.9999, abs=2e-4)):
                s.distribute(effort_limits=limits * more)


def test_infeasible_members_are_named_or_masked() -> None:
    s = Case("walker")
    needed = np.abs(s.distribute().effort).max()
    demands = s.demand * np.array([1.0, 50.0, 0.1, 80.0]).reshape(2, 2, 1)
    given = {"effort_limits": 1.2 * needed, "wrt": s.wrt}
    with raises(kic.LimitError, binding=("B1", "C1"), failed=[(0, 1), (1, 1)]):
        s.c.distribute(demands, actuators=s.actuators, **given)
    d = s.c.distribute(demands, actuators=s.actuators, **given, failures="mask")
    assert np.isnan(d.effort).all(axis=-1).tolist() == [[False, True], [False, True]]
    assert np.isnan(d.share[0, 1]).all()
    assert mismatch(d.effort[1, 0], 0.1 * s.distribute().effort) < 1e-12
    assert not d.at_limit.any()
    best = s.distribute("least largest share", effort_limits=needed).share.max() * needed
    with pytest.raises(kic.LimitError, match="nearly all of this generalized effort"):
        s.distribute(effort_limits=best * (1 - 1e-8))


def test_actuators_that_do_not_hold_every_motion() -> None:
    """Stretched out, a force along the arm moves nothing: the elbow is not held."""
    m = kic.load("horn-two-link")
    c = m.at([[0.0, 1.0], [0.0, 0.0], [0.3, 0.0]])
    given = {"actuators": ["shoulder", "reach"], "criterion": [1.0, 1.0]}
    data = {"coordinates": ("elbow",), "actuators": ("shoulder", "reach"), "failed": [(1,), (2,)]}
    for question in (partial(c.distribute, [1.0, 0.0]), c.internal_loads, c.actuator_dynamics):
        with raises(kic.SingularError, match="elbow can move. Add an actuator", **data):
            question(**given)
    d = c.distribute([1.0, 0.0], **given, failures="mask")
    assert np.isnan(d.effort).all(axis=-1).tolist() == [False, True, True]
    with raises(kic.SingularError, coordinates=("A1", "B1", "trunk.z")):
        Case("walker").c.distribute([0.0] * 3, actuators=MOTORS, wrt=["A1", "B1", "trunk.z"])


# --- internal loads ----------------------------------------------------------------------------------------


@every_case
def test_internal_loads_do_no_work(name: str) -> None:
    s = Case(name, 8)
    for criterion, W, more in (
        ("minimum norm", np.eye(s.A), {}),
        ("limits", np.diag(1 / s.limits**2), {"effort_limits": s.limits}),
        (V := s.weights(), V, {}),
    ):
        loads = s.c.internal_loads(actuators=s.actuators, criterion=criterion, wrt=s.wrt, **more)
        B = loads.basis
        assert loads.dimension == s.A - s.M == B.shape[-1]
        rates = s.of.velocity(s.rng.normal(size=(50, s.M)))
        power = np.abs(rates @ B).max(initial=0.0)
        assert power < 1e-12 * np.abs(rates).max() * np.abs(B).max(initial=1.0)
        assert np.abs(B.T @ W @ B - np.eye(loads.dimension)).max(initial=0.0) < 1e-12
        amounts = s.rng.normal(size=loads.dimension)
        T = loads.efforts(amounts)
        size = np.abs(amounts).max(initial=1.0)
        assert np.abs(loads.amounts(T) - amounts).max(initial=0.0) < 1e-12 * size
        # all of them: with the efforts that do work they are as many as there are actuators
        assert np.linalg.matrix_rank(np.column_stack([s.G, B])) == s.A


@pytest.mark.parametrize("decades", [4, 8, 12])
def test_weights_may_differ_much(decades: int) -> None:
    """Efforts and internal loads meet their definitions, including the metric, to rounding."""
    s = Case("arms", decades)
    for _ in range(10):
        w = 10.0 ** s.rng.uniform(-decades / 2, decades / 2, s.A)
        assert s.missed(s.distribute(w).effort) < 1e-14
        B = s.c.internal_loads(actuators=s.actuators, criterion=w, wrt=s.wrt).basis
        assert (np.abs(s.G.T @ B) <= 1e-13 * np.abs(s.G.T) @ np.abs(B)).all()
        assert np.abs(B.T @ (w[:, None] * B) - np.eye(6)).max() < 1e-13


@loose_cases
def test_the_basis_does_not_depend_on_the_coordinates(name: str) -> None:
    s = Case(name, 9)
    B = [s.c.internal_loads(actuators=s.actuators, wrt=wrt).basis for wrt in (s.wrt, None)]
    assert mismatch(*B) < 1e-11
    # the leading effort of each is positive, and stands alone in those after it
    lead = [int(np.argmax(np.linalg.norm(B[0], axis=1)))]
    assert B[0][lead[0], 0] > 0
    assert np.abs(B[0][lead[0], 1:]).max(initial=0.0) < 1e-14


def test_internal_loads_in_words() -> None:
    loads = kic.load("two-finger-hand").at().internal_loads(actuators=HAND)
    assert loads.sentences() == ["Internal load 1: A1, B1 against A2, B2."]
    text = loads.summary().text()
    assert "1 internal load of 4 actuators on 3 coordinates, orthonormal by minimum norm" in text
    assert "Internal load 1: A1, B1 against A2, B2." in loads._repr_html_()
    # a motor that is needed by itself: the torso's lift and yaw beside two that turn the neck about one axis
    arm = kic.load("twin-arm")
    loads = arm.at().internal_loads(actuators=[*arm.coordinates, "head.wx"], criterion=np.ones(11))
    assert loads.dimension == 1
    said = loads.sentences()
    assert said[1].startswith("In no internal load: lift, yaw")
    assert loads.basis[0, 0] == 0
    none = kic.load("gough-stewart").at().internal_loads(actuators=[f"L{k}" for k in range(1, 7)])
    assert none.sentences() == ["No internal load: there are as many actuators as degrees of freedom."]
    assert "0 internal loads" in str(none.summary())
    hand = kic.load("two-finger-hand").at(np.tile([1.8, -0.9, 0.0], (0, 1)))
    assert "empty batch (0,)" in str(hand.internal_loads(actuators=HAND).summary())
    assert "empty batch (0,)" in str(hand.distribute([0, 0, 0], actuators=HAND).summary())


def test_distribution_in_words() -> None:
    c = kic.load("two-finger-hand").at()
    weight = c.dynamics(wrt=OBJECT).inverse_dynamics([0, 0, 0], [0, 0, 0])
    limits = {"criterion": "limits", "effort_limits": [0.06, 0.05, 0.1, 0.1]}
    d = c.distribute(weight, actuators=HAND, wrt=OBJECT, **limits)
    text = str(d.summary())
    assert "efforts of 4 actuators for object.x, object.y, object.angle, by limits" in text
    assert "share of limit" in text
    assert "at a limit: B1" in text
    assert "at a limit: B1" in d._repr_html_()
    many = c.distribute(np.tile(weight, (2, 1)), actuators=HAND, wrt=OBJECT)
    assert "batch (2,), shown: member [0]" in str(many.summary())


@loose_cases
def test_preloads_add_efforts_without_work(name: str) -> None:
    s = Case(name, 11)
    W = s.weights()
    loads = s.c.internal_loads(actuators=s.actuators, criterion=W, wrt=s.wrt)
    bare = s.distribute(W)
    extra = loads.efforts(s.rng.normal(size=loads.dimension))
    d = s.distribute(W, preload=extra)
    size = np.abs(d.effort).max()
    assert np.abs(d.effort - bare.effort - extra).max() < 1e-11 * size
    assert np.abs(d.internal - extra).max() < 1e-11 * size
    # of other efforts only that part counts: the rest is what the least would give for their own demand
    any_efforts = s.rng.normal(size=s.A)
    part = any_efforts - kkt(s.G, W, s.G.T @ any_efforts)
    assert np.abs(s.distribute(W, preload=any_efforts).internal - part).max() < 1e-10 * size
    assert mismatch(loads.efforts(loads.amounts(any_efforts)), part) < 1e-10
    # as nearly as limits let it: no other efforts within them are nearer to what was wanted
    limits = np.maximum(np.abs(bare.effort), 0.9 * np.abs(d.effort))
    held = s.distribute(W, effort_limits=limits, preload=extra)
    assert held.at_limit.any()
    assert s.missed(held.effort) < 1e-12
    want = enumerated_near(s.G, W, s.demand, limits, d.effort) if s.A < 8 else None
    if want is not None:
        assert mismatch(held.effort, want) < 1e-9


def enumerated_near(G, W, demand, limits, wanted) -> np.ndarray:
    """The same enumeration for the efforts nearest to some."""
    found = enumerated(G, W, demand - G.T @ wanted, -limits - wanted, limits - wanted)
    assert found is not None
    return found + wanted


@every_case
def test_stiffness_is_the_derivative_of_the_generalized_effort(name: str) -> None:
    s = Case(name, 12)
    G = stepped(s.c, s.wrt).coefficients(s.actuators, order=1, wrt=s.wrt).G.imag / STEP  # [b, i, a]
    T = s.rng.normal(size=s.A)
    loads = s.c.internal_loads(actuators=s.actuators, wrt=s.wrt)
    K = loads.stiffness(T)
    assert mismatch(K, -E("bia,i->ab", G, T)) < 1e-11
    if s.of.holonomic:
        assert np.abs(K - K.T).max() < 1e-12 * np.abs(K).max()
    else:
        assert np.abs(K - K.T).max() > 1e-3 * np.abs(K).max()
    d = s.distribute(preload=T)
    assert mismatch(d.stiffness, loads.stiffness(d.effort)) < 1e-14


def test_a_preload_stiffens_by_its_sign() -> None:
    """A hinge at each end of a block: drawn apart, it is held against turning; pressed, it is turned away."""
    c = kic.load("two-finger-hand").at()
    loads = c.internal_loads(actuators=HAND, wrt=OBJECT)
    T = loads.efforts([1.0])
    # force of the first finger on the block, along the line of the contacts, from its own two joints
    A, B, C = np.array([-0.04, 0.0]), np.array([-0.068, 0.096]), np.array([-0.02, 0.16])
    J = np.array([[-(C - A)[1], -(C - B)[1]], [(C - A)[0], (C - B)[0]]])
    force = np.linalg.solve(J.T, T[:2])
    assert force[1] == pytest.approx(0, abs=1e-12)
    pulling = np.sign(-force[0])  # it stands on the left
    assert pulling * loads.stiffness(T)[2, 2] > 0
    assert pulling * loads.stiffness(-T)[2, 2] < 0
    # a small turn, efforts as they were: the generalized effort has changed by −K δq
    turn = 1e-6
    moved = kic.load("two-finger-hand").at(
        {"object.x": c.value("object.x"), "object.y": c.value("object.y"), "object.angle": turn}, near=c
    )
    change = moved.coefficients(HAND, wrt=OBJECT).G.T @ T
    assert change == pytest.approx(-loads.stiffness(T)[:, 2] * turn, rel=1e-4)


# --- batches and errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (3,), (2, 1), (0,)])
@pytest.mark.parametrize("name", ["hand", "walker, all six"])
def test_batches(name: str, batch: tuple[int, ...]) -> None:
    s = Case(name)
    c = s.m.at(s.at + 0.02 * s.rng.normal(size=(*batch, s.M)), near=s.c)
    demand = s.demand * s.rng.uniform(0.5, 1.5, size=(*batch, 1))
    sizes = 2 * s.limits * s.rng.uniform(0.8, 1.2, size=(*batch, s.A))
    limits, W = np.stack([-sizes, sizes]), s.weights()
    preload = s.rng.normal(size=(*batch, s.A)) * s.limits
    laws = [
        ("minimum norm", {}),
        ("minimum norm", {"effort_limits": limits}),
        (W, {"effort_limits": limits}),
        ("limits", {"effort_limits": limits, "preload": preload}),
        ("least largest share", {"effort_limits": limits}),
    ]
    loads = c.internal_loads(actuators=s.actuators, criterion="limits", effort_limits=limits, wrt=s.wrt)
    assert loads.batch == batch
    assert loads.basis.shape == (*batch, s.A, s.A - s.M)
    assert loads.stiffness(preload).shape == (*batch, s.M, s.M)
    assert loads.amounts(preload).shape == (*batch, s.A - s.M)
    seen = c.actuator_dynamics(actuators=s.actuators, criterion=W, wrt=s.wrt)
    assert seen.P.shape == (*batch, s.A, s.M, s.M)
    for criterion, more in laws:
        own = {"actuators": s.actuators, "criterion": criterion, "wrt": s.wrt}
        d = c.distribute(demand, **own, **more)
        assert d.batch == batch
        assert (d.effort.shape, d.demand.shape) == ((*batch, s.A), (*batch, s.M))
        assert d.stiffness.shape == (*batch, s.M, s.M)
        for k in np.ndindex(batch):
            alone = {key: value[k if key == "preload" else (slice(None), *k)] for key, value in more.items()}
            single = Configuration(s.m._model, (), c.state[k][None])
            want = single.distribute(demand[k], **own, **alone)
            assert np.abs(d.effort[k] - want.effort).max() < 1e-12 * np.abs(want.effort).max()


def test_batches_of_everything_broadcast() -> None:
    s = Case("hand")
    demand = s.demand * np.ones((4, 1, 1))
    W = np.stack([np.eye(4), np.diag([1.0, 2, 3, 4])])
    limits = 1e3 * np.stack([-np.ones((1, 2, 4)), np.ones((1, 2, 4))])
    d = s.c.distribute(demand, actuators=s.actuators, criterion=W, effort_limits=limits, wrt=s.wrt)
    assert d.batch == (4, 2)
    assert mismatch(d.effort[2, 1], s.distribute([1.0, 2, 3, 4]).effort) < 1e-13
    with raises(
        kic.InputError, batches={"configuration": (), "criterion": (), "effort": (3,), "effort_limits": (2,)}
    ):
        s.c.distribute(np.ones((3, 3)), actuators=s.actuators, effort_limits=np.ones((2, 2, 4)), wrt=s.wrt)
    loads = s.m.at(np.tile(s.at, (2, 1)), near=s.c).internal_loads(actuators=s.actuators, wrt=s.wrt)
    refuses(lambda: loads.stiffness(np.ones((3, 4))), batches={"loads": (2,), "efforts": (3,)})


def test_members_without_configuration_are_nan() -> None:
    m = kic.load("two-finger-hand")
    drawn = m.at()
    at = np.array([float(drawn.value(x)) for x in ("A1", "B1", "C1")])
    c = m.at(at + np.array([[0.0, 0, 0], [1.5, 0, 0], [0.01, 0.01, 0.01]]), near=drawn, failures="mask")
    assert c.ok.tolist() == [True, False, True]
    motors = HAND
    d = c.distribute([1.0, 1.0, 0.1], actuators=motors, effort_limits=1e3)
    assert np.isfinite(d.effort).all(axis=-1).tolist() == c.ok.tolist()
    loads = c.internal_loads(actuators=motors)
    assert np.isfinite(loads.basis).all(axis=(-1, -2)).tolist() == c.ok.tolist()
    assert np.isfinite(loads.stiffness([1.0] * 4)).all(axis=(-1, -2)).tolist() == c.ok.tolist()
    assert np.isfinite(c.actuator_dynamics(actuators=motors).I).all(axis=(-1, -2)).tolist() == c.ok.tolist()


def test_mixed_kinds_are_weighed_by_limits() -> None:
    """Results are equal in metres and in millimetres, unlike those of the minimum norm."""
    c = kic.load("walking-machine").at()
    u, names = [1.0, 2.0, 0.5], ["B1", "C1", "trunk.x", "C2"]
    d = c.distribute(u, actuators=names, criterion="limits", effort_limits=[50, 50, 400, 50])
    G = c.coefficients(names, order=1).G
    want = kkt(G, np.diag(1 / np.array([50.0, 50, 400, 50]) ** 2) * 2500, np.array(u))
    assert mismatch(d.effort, want) < 1e-12
    same = c.distribute(u, actuators=names, criterion=[1, 1, 1 / 64, 1])
    assert mismatch(d.effort, same.effort) < 1e-12
