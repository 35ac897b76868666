"""Certificates of complex solutions: bounds of series, many digits, wrong states, proved numbers."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
import pytest
from assembly_cases import arm_of_six, generic_of, inputs_of, modes_of, six_distances
from raising import refuses

import kic
from kic.analysis.positions import certificates, complex_paths
from kic.analysis.positions.monodromy import GenericSolutions
from kic.mechanism.inputs import position_problem

# joints of all kinds in loops, rods, couplings, ball joints on both sides
MODELS = ["gough-stewart", "three-rps", "stephenson-six-bar", "delta", "rssr", "scotch-yoke", "stewart-6r"]


@cache
def six() -> tuple[kic.Mechanism, np.ndarray, GenericSolutions]:
    """Return a platform on six distances, its 40 solutions, and those at generic distances."""
    m = six_distances(np.random.default_rng(1))
    modes_of(m)
    generic = generic_of(m)
    q = generic.tracker.parameters.of_values(inputs_of(m)[None])
    ends, code = generic.endgame.ends(generic.states, np.ones(40, dtype=bool), generic.base, q)
    assert (code == 1).all()
    return m, ends[0], generic


def exact_platform(m: kic.Mechanism, state: np.ndarray, lengths: np.ndarray, digits: int = 50) -> np.ndarray:
    """Return the error (7,) of a state by Newton's method in many digits, from equations of its own."""
    at = np.array(m["free"].at)
    pairs = [[np.array(m[name].at) for name in distance.points] for distance in m.distances]

    def cross(u, k):
        return [u[1] * k[2] - u[2] * k[1], u[2] * k[0] - u[0] * k[2], u[0] * k[1] - u[1] * k[0]]

    def equations(x, y, z, w, *v):
        rows = [w * w + sum(c * c for c in v) - 1]
        for (a, b), length in zip(pairs, lengths, strict=True):
            turn = [2 * c for c in cross(v, b - at)]
            end = zip(b - a, turn, cross(v, turn), (x, y, z), strict=True)
            rows.append(sum((c + w * t + u + s) ** 2 for c, t, u, s in end) - mpmath.mpf(length) ** 2)
        return rows

    with mpmath.workdps(digits):
        start = list(map(mpmath.mpmathify, state))
        return np.array(
            [complex(x - s) for x, s in zip(mpmath.findroot(equations, start), start, strict=True)]
        )


@pytest.mark.slow
def test_balls_contain_the_solution_that_many_digits_show() -> None:
    m, ends, generic = six()
    lengths = inputs_of(m)
    p = np.repeat(generic.tracker.parameters.of_values(lengths[None]), 40, axis=0)
    radii = generic.certificates.balls(ends, p)
    assert (radii < 1e-6).all()
    for end, radius in zip(ends, radii, strict=True):
        off = exact_platform(m, end, lengths)
        assert np.abs(off[:3]).max() < radius * m._model.length
        assert np.abs(off[3:]).max() < 2 * radius * np.abs(end[3:]).max()


@pytest.mark.parametrize("digits", range(1, 10))
def test_no_ball_without_a_solution(digits: int) -> None:
    """About states off all of the solutions, none of which is missing."""
    _, ends, generic = six()
    rng, tracker = np.random.default_rng(digits), generic.tracker
    p = tracker.parameters.of_values(inputs_of(six()[0])[None])
    off = rng.normal(size=(2, 10, 40, tracker.tree.size)) * 10.0**-digits
    states = tracker.moved(np.tile(ends, (10, 1)), (off[0] + 1j * off[1]).reshape(400, -1))
    radii = generic.certificates.balls(states, np.repeat(p, len(states), axis=0))
    good = np.isfinite(radii)
    assert good.any() == (digits > 4)  # balls are not too small either
    apart = np.linalg.norm(tracker.embedded(states)[:, None] - tracker.embedded(ends), axis=2)
    # the state is well inside: its distance to the solution, by steps or embedded, is at most √67 radii
    assert (apart.min(axis=1)[good] < 8.2 * radii[good]).all()
    assert (radii[good] > 0.9 * np.abs(off[0] + 1j * off[1]).max(axis=-1).ravel()[good]).all()


@pytest.mark.slow_for("stewart-6r")
@pytest.mark.parametrize("name", MODELS)
def test_series_bound_the_change_of_gradients(name: str) -> None:
    """Also far from solutions and from real states."""
    m = kic.load(name)
    closure = position_problem(m._model, inputs_of(m))[1]
    generic = GenericSolutions(closure, m._model.reference_state[0], np.random.default_rng(0))
    own, tracker, rng = generic.certificates, generic.tracker, np.random.default_rng(5)
    assert own.is_served
    size, count = tracker.tree.size, 40
    start = np.repeat(m._model.reference_state.astype(complex), count, axis=0)
    states = tracker.moved(start, rng.normal(size=(count, size)) + 1j * rng.normal(size=(count, size)))
    p = np.repeat(generic.base, count, axis=0)
    left, G, *_ = own._equations(states, p)
    near = own._near(states)
    w = rng.uniform(0.1, 1.0, (count, size))
    closest = 0.0
    for row in np.flatnonzero(~closure.constant_rows):
        # columns that carry both ends do not count
        moving = w * closure.transfer.system.moving[own.item_of[row]]
        x = moving * rng.uniform(size=w.shape) * np.exp(2j * np.pi * rng.uniform(size=w.shape))
        for rho in (1e-3, 0.1, 0.5):
            bound = own._series(near, rho * w, w)
            moved, other, *_ = own._equations(tracker.moved(states, rho * x), p)
            change = (np.abs(other - G)[:, row] * w).sum(axis=1)
            largest = rho * bound[2][:, row]
            assert (change <= largest + 1e-9 * np.abs(G[:, row]).sum(axis=1)).all()
            assert (np.abs(moved - left)[:, row] <= rho * bound[1][:, row] + 1e-9).all()
            closest = max(closest, float((change / largest).max(initial=0.0)))
    assert closest > 0.05  # bounds are of the right size


def test_numbers_that_are_proved() -> None:
    """Solutions of an arm and of a platform are certified, distinct, and real or not."""
    rng = np.random.default_rng(3)
    arm = arm_of_six(*rng.uniform(0.1, 1.0, (2, 6)), rng.uniform(-1.5, 1.5, 6))
    known = modes_of(arm, {"hand": arm.at(rng.uniform(-2, 2, 6)).pose("hand")}).completeness
    assert (known.certified_complex, known.generic, bool(known.proven)) == (16, 16, True)
    assert known.certified.sum() == known.real
    assert f"of which {known.real} are real" in known.statement
    known = modes_of(six()[0]).completeness
    assert (known.certified_complex, known.real, bool(known.proven)) == (40, 6, True)


@pytest.mark.slow
def test_numbers_that_are_not_proved(monkeypatch) -> None:
    """No number may be known; the limit of reach has a double solution."""
    with monkeypatch.context() as patched:
        patched.setattr("kic.analysis.positions.monodromy.proven_number", lambda _: None)
        known = modes_of(kic.load("three-rrr")).completeness
    assert (known.certified_complex, bool(known.proven)) == (6, False)
    assert "6 distinct complex solutions" in known.statement
    two = kic.load("horn-two-link")
    c = two.at({"shoulder": [0.0, 0.0, 0.1], "elbow": [1.0, 0.0, 1.0]})
    known = modes_of(two, {name: c.value(name) for name in ("tip.x", "tip.y")}).completeness
    assert known.certified_complex.tolist() == [2, 0, 2]
    assert known.certified.sum(axis=0).tolist() == [2, 0, 2]
    assert known.proven.tolist() == [True, False, True]


def test_equal_and_conjugate_states_count_once() -> None:
    m, ends, generic = six()
    tracker, p = generic.tracker, generic.tracker.parameters.of_values(inputs_of(m)[None])
    turned = ends.copy()
    turned[:, 3:] *= -1
    owner = np.zeros(40, dtype=int)
    assert [x.tolist() for x in generic.certificates.counts(ends, owner, p)[:3]] == [[40], [6], [True]]
    # a state with a copy is not distinct from it
    both = generic.certificates.counts(np.concatenate([ends, turned[:3]]), np.zeros(43, dtype=int), p)
    assert both[0].tolist() == [37]
    # real parts of complex solutions are no solutions
    off = np.where(tracker.imaginary(ends)[:, None] > 1e-3, ends.real, ends)
    assert [x.tolist() for x in generic.certificates.counts(off, owner, p)[:3]] == [[6], [6], [True]]
    # members have their own values
    several = generic.certificates.counts(ends, np.arange(40) % 2, np.concatenate([p, p * 1.01]))
    assert several[0].tolist() == [20, 0]


@pytest.mark.parametrize("gap", 10.0 ** -np.arange(3.0, 10.0))
def test_close_solutions(gap: float) -> None:
    """Two elbows near the limit of reach are separated or refused, but never taken for one."""
    m = kic.load("horn-two-link")
    c = m.at({"shoulder": 0.3, "elbow": gap})
    known = modes_of(m, {name: float(c.value(name)) for name in ("tip.x", "tip.y")}).completeness
    assert known.finite == 2
    assert known.certified_complex in ([2] if gap >= 1e-5 else [0] if gap <= 1e-8 else [0, 2])


def test_universal_joints_that_are_turned_over() -> None:
    """Each half turn is another solution."""
    m = kic.load("rssr")
    known = modes_of(m).completeness
    generic = generic_of(m)
    assert len(generic.tracker.flips) == 1
    assert known.certified_complex == known.finite == 4
    flipped = generic.tracker.all_flips(generic.states)
    p = np.repeat(generic.base, len(flipped), axis=0)
    radii = generic.certificates.balls(flipped, p)
    assert np.isfinite(radii).all()
    # modulo half turns they are two
    assert not generic.certificates._apart(flipped, radii).any()
    assert generic.certificates._apart(generic.states, radii[:2]).all()


def test_a_pose_half_a_turn_away_is_no_solution() -> None:
    """Components of its rotation vanish, but not the rows of the pose."""
    m = kic.load("puma560")
    q = np.array([0.3, 0.5, -2.2, 0.7, 0.8, -0.4])
    pose = m.at(q).pose("link6")
    modes_of(m, {"link6": pose})
    generic = generic_of(m)
    tracker = generic.tracker
    values = tracker.closure.rows(m.at(q)._states)[0] * tracker.closure.transfer.scale
    p = tracker.parameters.of_values(values)
    assert np.isfinite(generic.certificates.balls(m.at(q)._states, p)).all()
    k = generic.tracker.parameters.poses[0][1]
    turned = values.copy()
    turned[:, k : k + 9] *= np.tile([1.0, -1.0, -1.0], 3)
    p = tracker.parameters.of_values(turned)
    left, _, _, axes = generic.certificates._equations(m.at(q)._states.astype(complex), p)
    assert np.abs(axes @ left[0]).max() < 1e-14
    assert np.isnan(generic.certificates.balls(m.at(q)._states, p)).all()


def few_paths(count: int) -> tuple[GenericSolutions, np.ndarray, np.ndarray, np.ndarray]:
    """Return solutions of the platform at generic distances, these, and others not far away."""
    generic = six()[2]
    other = generic.tracker.parameters.random(generic.like, np.random.default_rng(2), 1, spread=0.2)
    return generic, generic.states[:count], generic.base, generic.base + 0.3 * (other - generic.base)


@pytest.mark.slow
def test_certified_paths_end_where_short_steps_do() -> None:
    generic, states, start, end = few_paths(8)
    ends, share = generic.certificates.follow(states, start, end)
    assert (share == 1).all()
    both = np.repeat(start, 8, axis=0), np.repeat(end, 8, axis=0)
    tight, done = generic.tracker.track(states, *both, 0.03)
    assert (done == 1).all()
    off = generic.tracker.embedded(ends) - generic.tracker.embedded(tight)
    assert np.linalg.norm(off, axis=1).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, 0.4])
def test_injected_jumps_are_detected(monkeypatch, after: float) -> None:
    """Two of the paths exchange their solutions from a share of the way on."""
    generic, states, start, end = few_paths(4)
    tracker, own = generic.tracker, generic.tracker.track
    there, _ = own(states, *(np.repeat(x, 4, axis=0) for x in (start, end)))
    way = (end - start)[0]

    def exchanged(states: np.ndarray, begin: np.ndarray, to: np.ndarray, tightness: float = 1.0):
        """Continue paths, but those of the solutions 0 and 1 from the other one of both."""
        found, share = own(states, begin, to, tightness)
        part = ((to - start) @ way.conj()).real / (way @ way.conj()).real
        ends, _ = own(found, to, np.repeat(end, len(to), axis=0))
        gaps = np.linalg.norm(tracker.embedded(ends)[:, None] - tracker.embedded(there), axis=2)
        for k in np.flatnonzero((part > after) & (gaps.argmin(axis=1) < 2)):
            other = there[[1 - gaps[k].argmin()]]
            found[k] = own(other, end, to[[k]])[0][0]
        return found, share

    monkeypatch.setattr(tracker, "track", exchanged)
    ends, share = generic.certificates.follow(states, start, end)
    assert (share[:2] <= after + 1e-6).all()
    assert (share[:2] >= after - 1e-6).all()
    assert (share[2:] == 1).all()
    monkeypatch.undo()
    back, done = own(ends, start + share[:, None] * (end - start), np.repeat(start, 4, axis=0))
    assert (done == 1).all()
    assert np.abs(tracker.embedded(back) - tracker.embedded(states)).max() < 1e-8


@pytest.mark.parametrize("error", [ZeroDivisionError, ValueError], ids=["compiler", "library"])
def test_a_zero_divisor_ends_one_path(monkeypatch, error: type[Exception]) -> None:
    """Distances of points that are far from real ones may vanish by rounding."""
    generic, states, start, end = few_paths(4)
    own = complex_paths.kernel.path_tracking

    def stopped(plan, numbers, *others) -> int:
        """Follow the paths before solution 1."""
        tables, (here, begin, change, tightness, shares, *scratch) = others[:6], others[6:]
        bad = np.flatnonzero((here == generic.states[1]).all(axis=1))
        k = bad[0] if bad.size else len(here)
        steps = own(plan, numbers, *tables, here[:k], begin[:k], change[:k], tightness, shares[:k], *scratch)
        if bad.size:
            raise error
        return steps

    both = np.repeat(start, 4, axis=0), np.repeat(end, 4, axis=0)
    there, _ = generic.tracker.track(states, *both)
    monkeypatch.setattr(complex_paths.kernel, "path_tracking", stopped)
    ends, share = generic.tracker.track(states, *both)
    assert share.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert np.array_equal(ends[share == 1], there[share == 1])


def elbow_below_reach() -> tuple[GenericSolutions, float, np.ndarray, np.ndarray]:
    """Return generic solutions of two links, their reach, a state 0.5 below it, and scales of rows."""
    m = kic.load("horn-two-link")
    reach = float(m.at({"shoulder": 0.0, "elbow": 0.0}).value("tip.x"))
    found = modes_of(m, {"tip.x": reach - 0.5, "tip.y": 0.0})
    generic = generic_of(m)
    state = found[:1]._states.astype(complex)
    return generic, reach, state, generic.tracker.closure.transfer.scale[:2]


@pytest.mark.parametrize("off", [0.1, 1e-2, 1e-3, 1e-4])
def test_certified_paths_around_a_branch_point(off: float) -> None:
    """The elbow is about √(reach − x), whose branch beyond the reach depends on the side of the way."""
    generic, reach, state, scale = elbow_below_reach()
    elbow, ends = generic.tracker.tree.column["elbow"], []
    for side in (1, -1):
        way = np.array([[reach - 0.5, 0.0], [reach + side * 1j * off, 0.0], [reach + 0.5, 0.0]]) / scale
        here = state
        for n in range(2):
            here, share = generic.certificates.follow(here, way[n : n + 1], way[n + 1 : n + 2])
            assert share.tolist() == [1.0]
        assert here[0, elbow].real == pytest.approx(0.0, abs=1e-9)
        # reach − x turns from 0.5 by −i side to −0.5, and its root by half of that
        assert np.sign(here[0, elbow].imag) == -side * np.sign(state[0, elbow].real)
        ends.append(here[0, elbow])
    assert ends[0] == pytest.approx(-ends[1], abs=1e-9)


def test_no_certified_path_through_a_singular_configuration() -> None:
    generic, reach, state, scale = elbow_below_reach()
    ends = np.array([[reach - 0.5, 0.0], [reach + 0.5, 0.0]], dtype=complex) / scale
    _, share = generic.certificates.follow(state, ends[:1], ends[1:])
    assert 0.49 < share[0] < 0.5


def test_certified_paths_are_counted() -> None:
    m = kic.load("three-rrr")
    known = modes_of(m, certify=True).completeness
    assert known.certified_paths == known.finite == 6
    assert "6 of 6 paths" in known.statement
    known = modes_of(m).completeness
    assert known.certified_paths == 0
    refuses(lambda: m.assembly_modes(inputs_of(m), certify=True), key="certify")


@pytest.mark.slow
def test_a_deadline_ends_certified_paths(monkeypatch) -> None:
    """Of two parts of the paths, the second is not begun."""
    generic, states, start, end = few_paths(6)
    monkeypatch.setattr(certificates, "STATES_AT_ONCE", 4)
    own = generic.tracker.track

    def late(states: np.ndarray, *others):
        if np.abs(states[0] - generic.states[3]).max() < 1e-9:
            raise TimeoutError
        return own(states, *others)

    monkeypatch.setattr(generic.tracker, "track", late)
    ends, share = generic.certificates.follow(states, start, end)
    assert share.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert np.array_equal(ends[3:], states[3:])
    m = kic.load("three-rrr")
    modes_of(m)
    known = modes_of(m, certify=True, time_limit=1e-9).completeness
    assert (known.certified_paths, known.evidence) == (0, "incomplete")


@pytest.mark.slow
def test_certified_paths_replace_lost_ones(monkeypatch) -> None:
    """One of six paths is lost in each attempt."""
    m = kic.load("three-rrr")
    modes_of(m)
    generic = generic_of(m)
    own = generic.endgame.ends

    def lost(*arguments):
        ends, code = own(*arguments)
        code[:, 0] = 0.0
        return ends, code

    monkeypatch.setattr(generic.endgame, "ends", lost)
    monkeypatch.setattr(generic.endgame, "filled", lambda ends, code, *_: (ends, code))
    known = modes_of(m).completeness
    assert (known.lost, known.finite, known.evidence) == (1, 5, "incomplete")
    known = modes_of(m, certify=True).completeness
    assert (known.lost, known.finite, known.certified_complex) == (0, 6, 6)
    assert known.evidence == "proven number"


def test_constants_of_interpolation() -> None:
    x, t, powers = certificates.NODES, np.linspace(-1, 1, 10_001), np.arange(5, 80)
    others = [np.delete(x, k) for k in range(5)]
    L = np.array([np.prod((t[:, None] - y) / (z - y), axis=1) for z, y in zip(x, others, strict=True)])
    assert certificates.LEBESGUE - 0.01 < np.abs(L).sum(axis=0).max() < certificates.LEBESGUE
    assert np.abs(np.delete(L, 2, axis=0)).sum(axis=0).max() < certificates.LEBESGUE_OTHERS
    errors = np.abs(t ** powers[:, None] - (x ** powers[:, None]) @ L).max(axis=1)
    # powers beyond these are at most 1, and their errors 1 + 1.8
    assert (errors * certificates.CIRCLES[0] ** (5.0 - powers) < certificates.POWER_ERROR).all()
    assert 2.8 * certificates.CIRCLES[0] ** (5.0 - powers[-1]) < certificates.POWER_ERROR
