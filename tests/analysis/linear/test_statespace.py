"""State space: the source's arm with motors, complex steps of nonlinear equations, transfer, hand-over."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from arms import arm
from raising import raises, refuses
from sampling import STEP, mismatch, moved, random_posture, random_tree, tree_rates
from scipy.signal import StateSpace, dlsim, lsim

import kic
from kic.kinematics.state import integrate

FILE = Path(__file__).parents[2] / "data" / "freeman_state_space.json"
CASE = json.loads(FILE.read_text(encoding="utf-8"))["state_space"][0]


def freeman() -> kic.Mechanism:
    """The arm of the reference, whose every motor moves every joint."""
    N = np.linalg.inv(np.array(CASE["G_drive"]))
    keys = {
        "inertia": "I_rotor", "damping": "B_q", "resistance": "R_q", "inductance": "L_q",
        "torque_constant": "C_M", "speed_constant": "C_E",
    }  # fmt: skip
    motors = [
        kic.Motor(f"M{k}", ["j1", "j2", "j3"], ratios=N[k], **{key: CASE[of][k] for key, of in keys.items()})
        for k in range(3)
    ]
    return arm(CASE["chain"], hand=CASE["P_local"], motors=motors)


def test_the_arm_of_the_source() -> None:
    c, v, a = freeman().at(CASE["phi"]), CASE["phid"], CASE["phidd"]
    bare = c.linearize(v, a)
    assert mismatch(bare.K, np.array(CASE["dT_dphi"])) < 1e-12
    assert mismatch(bare.C, np.array(CASE["dT_dphid"])) < 1e-12
    assert mismatch(c.dynamics(motors=True).I, np.array(CASE["I_star_with_rotor"])) < 1e-12
    assert mismatch(c.motor_demand(v, a, np.zeros(3)).current, np.array(CASE["i"])) < 1e-12
    s = c.linearize(v, a, motors=True).state_space()
    assert mismatch(s.A, np.array(CASE["F"])) < 1e-12
    assert mismatch(s.B, np.array(CASE["Gin"])) < 1e-12
    assert s.states == (*c.coordinates, "j1.rate", "j2.rate", "j3.rate", *(f"M{k}.current" for k in range(3)))
    assert s.inputs == ("M0", "M1", "M2")
    there = s.transfer(c.coefficients("hand", order=3))
    assert mismatch(there.A, np.array(CASE["Fhat_corrected"])) < 1e-12
    assert mismatch(there.A, np.array(CASE["Fhat_reference_independent"])) < 1e-10  # as far as it is known
    assert there.states[:6] == ("hand.x", "hand.y", "hand.z", "hand.x.rate", "hand.y.rate", "hand.z.rate")


def test_voltages_of_the_source() -> None:
    """With them currents change, and so do efforts: the jerk that follows takes the same voltages."""
    c, v, a = freeman().at(CASE["phi"]), np.array(CASE["phid"]), np.array(CASE["phidd"])
    N = np.linalg.inv(np.array(CASE["G_drive"]))
    R, L, k_t, k_e, V, i = (np.array(CASE[key]) for key in ("R_q", "L_q", "C_M", "C_E", "V", "i"))
    rate = (V - R * i - k_e * (N @ v)) / L
    lin = c.linearize(v, a, motors=True)
    jerk = np.linalg.solve(lin.I, N.T @ (k_t * rate) - lin.rate(np.zeros(3)))
    assert mismatch(c.motor_demand(v, a, jerk).voltage, V) < 1e-12


def test_every_source_number_is_tested() -> None:
    """Keys of the reference: inputs, and numbers compared in the two tests above."""
    given = {
        "chain", "G_drive", "L_q", "R_q", "C_E", "C_M", "I_rotor", "B_q", "phi", "phid", "phidd",
        "P_local",
    }  # fmt: skip
    said = {"q_kind", "note"}
    compared = {"i", "V", "F", "Gin", "dT_dphi", "dT_dphid", "I_star_with_rotor"}
    assert set(CASE) == given | said | compared | {"Fhat_corrected", "Fhat_reference_independent"}


def geared(rng: np.random.Generator, m: kic.Mechanism, joints: list[str], **more) -> kic.Mechanism:
    numbers = {
        "inertia": 3e-3, "damping": 2e-3, "resistance": 1.5, "inductance": 2e-2, "torque_constant": 0.05,
        "speed_constant": 0.06,
    } | more  # fmt: skip
    return replace(
        m,
        motors=[
            kic.Motor(
                f"M{k}",
                joints,
                ratios=10 * rng.normal(size=len(joints)),
                **{key: x * rng.uniform(0.5, 2) for key, x in numbers.items()},
            )
            for k in range(len(joints))
        ],
    )


def nonlinear(c, v, current, voltage, train, wrt=None):
    """Rates (q̈, di/dt) of the mechanism with its motors, written out; complex steps pass."""
    d = c.dynamics(wrt=wrt)
    joints = c.coefficients(train.joints, wrt=wrt)
    N = train.ratios @ joints.G
    bend = np.einsum("kj,jmn,m,n->k", train.ratios, joints.H, v, v)
    I = d.I + N.T @ np.diag(train.inertia) @ N
    speed = N @ v
    force = train.torque_constant * current - train.inertia * bend - train.damping * speed
    qdd = np.linalg.solve(I, N.T @ force - d.inverse_dynamics(v, np.zeros(len(v))))
    return qdd, (voltage - train.resistance * current - train.speed_constant * speed) / train.inductance


@pytest.mark.parametrize(
    ("name", "joints", "wrt"),
    [
        ("puma560", None, None), ("puma560", None, ["link6"]), ("five-bar", ["D", "A"], None),
        ("four-bar", ["D"], None), ("four-bar", ["A"], ["tip.x"]), ("three-rrr", None, None),
    ],
)  # fmt: skip
def test_motors_and_mechanism_by_complex_step(name: str, joints, wrt) -> None:
    """A and B against complex steps of the nonlinear equations, about a motion with its own currents."""
    rng = np.random.default_rng(len(name))
    m = kic.load(name)
    m = geared(rng, m, joints or list(m.coordinates))
    c = m.at(m.at()._phi + 0.4) if m._model.is_open_chain else m.at()
    train = m._model.drive_train
    M, K = m.dof, len(m.motors)
    v, a = rng.normal(size=(2, M))
    s = c.linearize(v, a, wrt=wrt, motors=True).state_space()
    current = c.motor_demand(v, a, np.zeros(M), wrt=wrt).current
    voltage = c.motor_demand(v, a, np.zeros(M), wrt=wrt).voltage
    assert mismatch(nonlinear(c, v, current, voltage, train, wrt)[0], a) < 1e-8
    lin = c.linearize(v, a, wrt=wrt)
    want = np.zeros_like(s.A)
    want[:M, :M], want[:M, M : 2 * M] = lin.commutator, np.eye(M)
    A, h = tree_rates(c, wrt), 1j * STEP
    for k in range(2 * M + K):
        e = np.eye(2 * M + K)[k]
        at = moved(c, A[:, :, k]) if k < M else c
        rates = nonlinear(at, v + h * e[M : 2 * M], current + h * e[2 * M :], voltage, train, wrt)
        want[M:, k] = np.concatenate(rates).imag / STEP
    allowed = 1e-10 if wrt is None else 1e-8
    assert mismatch(s.A, want) < allowed
    assert not s.B[: 2 * M].any()
    assert mismatch(s.B[2 * M :], np.diag(1 / train.inductance)) < 1e-14


def test_transfer_and_question_are_the_same() -> None:
    """(3-52): transfer from joints to a hand with angular velocities equals direct evaluation in its rows."""
    rng = np.random.default_rng(9)
    m = random_tree(rng, "RRRRRR", loads=True)
    m = geared(rng, m, list(m.coordinates))
    c = random_posture(rng, m)
    v, a = rng.normal(size=(2, 6))
    hand = c.coefficients("b5", order=3)
    outputs = ["p5", "j0.rate", "b5.wx", "M1.current"]
    first = c.linearize(v, a, motors=True).state_space(outputs=outputs)
    there = first.transfer(hand)
    asked = c.linearize(hand.velocity(v), hand.acceleration(v, a), wrt="b5", motors=True)
    asked = asked.state_space(outputs=outputs)
    allowed = 1e3 * np.finfo(float).eps * float(hand.condition()) ** 3
    for letter in "ABCD":
        assert mismatch(getattr(there, letter), getattr(asked, letter)) < max(1e-10, allowed), letter
    w = hand.velocity(v)[3:]
    assert mismatch(there.A[3:6, 3:6], np.cross(w, np.eye(3)).T) < 1e-10
    # and back again
    back = there.transfer(hand.inverse())
    assert mismatch(back.A, first.A) < max(1e-9, allowed)
    assert mismatch(back.C, first.C) < max(1e-9, allowed)


def test_efforts_and_forces_as_inputs() -> None:
    rng = np.random.default_rng(10)
    m = random_tree(rng, ["R", "spherical", "P"], loads=True)
    c = random_posture(rng, m)
    v, a = rng.normal(size=(2, 5))
    names = ["j1.2", "push", "thrust.y", "twist", "wrench.z"]
    s = c.linearize(v, a).state_space(inputs=names)
    assert s.inputs == (
        "j1.2", "push.x", "push.y", "push.z", "thrust.y", "twist.x", "twist.y", "twist.z", "wrench.z",
    )  # fmt: skip
    d = c.dynamics()
    effort = d.inverse_dynamics(v, a)
    column = np.linalg.solve(d.I, np.eye(5)[:, c.coordinates.index("j1.2")])
    assert mismatch(s.B[5:, 0], column) < 1e-10
    h = 1j * STEP
    for k, label in enumerate(s.inputs[1:], 1):
        name, _, part = label.partition(".")
        force = np.array(getattr(m[name], "force", getattr(m[name], "moment", None)), complex)
        force["xyz".index(part)] += h
        rates = c.dynamics(applied={name: force}).forward_dynamics(v, effort)
        assert mismatch(s.B[5:, k], rates.imag / STEP) < 1e-10, label
    assert not s.B[:5].any()
    # of a closed mechanism, in a batch
    four = kic.load("four-bar")
    four = replace(four, forces=[kic.Force("push", "tip", (1, 2, 0), axes="body"), kic.Force("none", "pin")],
                   points=[*four.points, kic.Point("pin", "ground", (0, 0, 0))])  # fmt: skip
    many = four.path({"A": 1 + np.linspace(0, 1, 4)})
    gain = many.linearize().state_space(inputs=["push", "none"]).B
    assert gain.shape == (4, 2, 6)
    assert not gain[..., 3:].any()
    for k, f in enumerate(np.eye(3)):
        with_it, without = (many.dynamics(applied={"push": x}).load for x in (f, np.zeros(3)))
        assert mismatch(gain[:, 1, k], ((with_it - without) / many.dynamics().I[..., 0])[:, 0]) < 1e-9


def test_outputs() -> None:
    rng = np.random.default_rng(11)
    m = geared(rng, kic.load("puma560"), ["waist", "elbow"])
    c = m.at(rng.normal(size=6))
    v = rng.normal(size=6)
    a = c.dynamics().forward_dynamics(v, c.dynamics().inverse_dynamics(v, np.zeros(6)))
    s = c.linearize(v, a, motors=True).state_space(
        outputs=["tool.x", "tool.rate", "link6.wy", "elbow", "M1.current"]
    )
    assert s.outputs == (
        "tool.x", "tool.x.rate", "tool.y.rate", "tool.z.rate", "link6.wy", "elbow", "M1.current",
    )  # fmt: skip
    A, h = tree_rates(c), 1j * STEP
    want = np.zeros_like(s.C)
    for k in range(12):
        at = moved(c, A[:, :, k]) if k < 6 else c
        u = v + h * (np.eye(6)[k - 6] if k >= 6 else 0)
        tool, turn = at.coefficients("tool", order=1), at.coefficients("link6.wy", order=1)
        value = at.value("tool")[0] if k < 6 else 0.0
        elbow = float(k == 2)
        rates = [np.imag(value) / STEP, *tool.velocity(u).imag / STEP, *turn.velocity(u).imag / STEP, elbow]
        want[:6, k] = rates
    want[6, 13] = 1.0
    assert mismatch(s.C, want) < 1e-12
    assert not s.D.any()


def test_reduced_models() -> None:
    """Without inductance currents follow voltages at once: the limit of the full model."""
    rng = np.random.default_rng(12)
    m = geared(rng, kic.load("four-bar"), ["A"], inductance=1.0)
    c = m.at({"A": 1.2})
    v, a = np.array([3.0]), np.array([0.0])
    reduced = c.linearize(v, a, motors=True).state_space(outputs=["A", "M0.current"], reduced=True)
    assert reduced.states == ("A", "A.rate")
    none = replace(m, motors=[replace(m.motors[0], inductance=0.0)]).at({"A": 1.2})
    same = none.linearize(v, a, motors=True).state_space(outputs=["A", "M0.current"])
    for letter in "ABCD":
        assert mismatch(getattr(same, letter), getattr(reduced, letter)) < 1e-14
    k, R, ke = (getattr(m.motors[0], key) for key in ("torque_constant", "resistance", "speed_constant"))
    n = m.motors[0].ratios[0]
    assert reduced.D[1, 0] == pytest.approx(1 / R)
    assert reduced.C[1] == pytest.approx([0.0, -ke * n / R])
    assert reduced.B[1, 0] == pytest.approx(k * n / R / float(c.dynamics(motors=True).I[0, 0]))
    # the full model's slow eigenvalues come near as the inductance goes, to first order
    missed = []
    for L in (1e-5, 1e-6):
        full = replace(m, motors=[replace(m.motors[0], inductance=L)]).at({"A": 1.2})
        values = full.linearize(v, a, motors=True).state_space().eigenvalues
        slow = values[np.argsort(np.abs(values))[:2]]
        missed.append(np.abs(np.sort_complex(slow) - np.sort_complex(reduced.eigenvalues)).max())
    assert missed[0] / missed[1] == pytest.approx(10, rel=0.05)


def test_linear_and_nonlinear_motion_differ_to_second_order() -> None:
    """A disturbed fall and its linear model, at the end of a tenth of a second: slope two."""
    from scipy.integrate import solve_ivp
    from scipy.linalg import expm

    m = replace(kic.load("horn-two-link"), gravity=(0, -9.81, 0))
    start = np.array([-1.2, 0.4])
    T = m.at(start).dynamics().inverse_dynamics(np.zeros(2), np.zeros(2))
    s = m.at(start).linearize().state_space()
    assert s.inputs == ("shoulder", "elbow")
    disturbed = np.array([0.7, -0.4, 0.3, 0.9])

    def fall(t, x):
        return np.concatenate([x[2:], m.at(x[:2]).dynamics().forward_dynamics(x[2:], T)])

    sizes, missed = (0.02, 0.002), []
    for size in sizes:
        x0 = np.concatenate([start, [0, 0]]) + size * disturbed
        end = solve_ivp(fall, (0, 0.1), x0, rtol=1e-12, atol=1e-14, method="DOP853").y[:, -1]
        linear = expm(0.1 * s.A) @ (size * disturbed) + np.concatenate([start, [0, 0]])
        missed.append(np.abs(end - linear).max())
    assert np.log10(missed[0] / missed[1]) == pytest.approx(2, abs=0.05)


def test_turning_states_of_a_ball() -> None:
    """A spinning top: the state matrix with its commutator, by steps of the nonlinear motion in time."""
    m = kic.Mechanism(
        "top",
        [kic.Body("top", mass=1.0, com=(0.1, 0.2, 0.5), inertia=(0.4, 0.5, 0.2))],
        [kic.Joint("J", "spherical", ("ground", "top"), at=(0, 0, 0))],
        gravity=(0, 0, -9.81),
    )
    c = m.at([0.3, -0.2, 0.5])
    v = np.array([1.0, -2.0, 3.0])
    T = np.array([0.3, 0.1, -0.2])
    s = c.linearize(v, effort=T).state_space()
    x0 = np.array([0.3, -0.2, 0.5, 0.1, 0.4, -0.3])

    def after(size: float, time: float):
        """Where a disturbed top is after a time, as a turn from where the undisturbed one is, and ω."""
        from scipy.integrate import solve_ivp

        def run(turn, w):
            q0 = integrate(m._model.tree, c._states, turn[None])[0]

            def rates(t, y):
                q = y[:4] / np.linalg.norm(y[:4])
                here = kic.Configuration(m._model, (), q[None])
                w = y[4:]
                qd = 0.5 * np.array([-(q[1:] @ w), *(q[0] * w + np.cross(w, q[1:]))])
                return np.concatenate([qd, here.dynamics().forward_dynamics(w, T)])

            return solve_ivp(rates, (0, time), [*q0, *w], rtol=1e-11, atol=1e-13, method="DOP853").y[:, -1]

        from kic.kinematics.state import difference

        a, b = run(np.zeros(3), v), run(size * x0[:3], v + size * x0[3:])
        turn = difference(m._model.tree, a[None, :4], b[None, :4] / np.linalg.norm(b[:4]))[0]
        return np.concatenate([turn, b[4:] - a[4:]])

    # the slope of the deviation in time at its start is A x0
    size, h = 1e-4, 1e-3
    rate = (after(size, h) - after(size, 1e-9)) / (size * h)
    # half a step of its own change, and the square of the disturbance, remain
    ends = (after(size, h / 2) - after(size, 1e-9)) / (size * h / 2)
    assert np.abs(2 * ends - rate - s.A @ x0).max() < 5e-3 * np.abs(s.A @ x0).max()
    wrong = s.A.copy()
    wrong[:3, :3] = 0
    assert np.abs(2 * ends - rate - wrong @ x0).max() > 0.02 * np.abs(s.A @ x0).max()


def test_discrete_models() -> None:
    from scipy.linalg import expm

    rng = np.random.default_rng(13)
    m = geared(rng, kic.load("puma560"), list(kic.load("puma560").coordinates))
    c = m.at(rng.normal(size=(2, 1, 6)))
    s = c.linearize(motors=True).state_space()
    discrete = s.discretize(0.01)
    assert discrete.dt == 0.01
    assert discrete.A.shape == s.A.shape == (2, 1, 18, 18)
    for b in range(2):
        assert mismatch(discrete.A[b, 0], expm(0.01 * s.A[b, 0])) < 1e-12
        block = np.zeros((24, 24))
        block[:18, :18], block[:18, 18:] = s.A[b, 0], s.B[b, 0]
        assert mismatch(discrete.B[b, 0], expm(0.01 * block)[:18, 18:]) < 1e-10
    for method in ("foh", "impulse", "euler", "backward_diff", "bilinear"):
        assert s.discretize(0.01, method=method).A.shape == s.A.shape
    assert mismatch(s.discretize(0.01, method="euler").A, np.eye(18) + 0.01 * s.A) < 1e-14
    for wrong in (0, -1, np.nan, [1, 2], "x"):
        refuses(lambda wrong=wrong: s.discretize(wrong), key="dt")
    refuses(lambda: s.discretize(0.1, method="tustin"), key="method")
    refuses(lambda: discrete.discretize(0.1), key="dt")
    refuses(lambda: discrete.transfer(c.coefficients("link6", order=3)), key="dt")
    assert "sampled with dt = 0.01" in str(discrete.summary())
    masked = m.at(np.array([[0.1] * 6, [np.nan] * 6]), failures="mask").linearize(motors=True).state_space()
    assert np.isnan(masked.A[1]).all()
    assert np.isnan(masked.discretize(0.1).A[1]).all()
    assert np.isnan(masked.eigenvalues[1]).all()
    assert np.isfinite(masked.eigenvalues[0]).all()
    empty = m.at(np.zeros((0, 6))).linearize(motors=True).state_space()
    assert empty.A.shape == (0, 18, 18)
    assert "empty batch" in str(empty.summary())


def test_hand_over_to_scipy() -> None:
    c = kic.load("four-bar").at({"A": 1.2})
    s = c.linearize().state_space(outputs=["tip.x", "A.rate"])
    handed = s.to_scipy()
    assert isinstance(handed, StateSpace)
    assert np.array_equal(handed.A, s.A)
    assert np.array_equal(handed.C, s.C)
    assert handed.dt is None
    assert s.discretize(0.1).to_scipy().dt == 0.1
    many = kic.load("four-bar").path({"A": [1.2, 1.3]}).linearize().state_space()
    for question in (many.to_scipy, many.to_control):
        refuses(question, got=(2,))


def test_hand_over_to_python_control(monkeypatch) -> None:
    s = kic.load("four-bar").at({"A": 1.2}).linearize().state_space(outputs=["tip.x", "A.rate"])
    monkeypatch.setitem(sys.modules, "control", None)
    refuses(s.to_control, kic.MissingExtraError, extra="control")
    # what is handed over, whether it is installed or not
    ss = lambda *four, **names: (four, names)  # noqa: E731
    monkeypatch.setitem(sys.modules, "control", SimpleNamespace(ss=ss))
    four, names = s.to_control()
    assert four[4] == 0
    assert np.array_equal(four[0], s.A)
    assert names == {"states": ["A", "A_rate"], "inputs": ["A"], "outputs": ["tip_x", "A_rate"]}
    assert s.discretize(0.1).to_control()[0][4] == 0.1
    clash = kic.results.StateSpace(
        np.eye(2), np.zeros((2, 0)), np.eye(2), np.zeros((2, 0)), ["a.b", "a_b"], [], ["u", "v"]
    )
    assert clash.to_control()[1]["states"] == ["a_b", "a_b_"]


def test_python_control_takes_it() -> None:
    control = pytest.importorskip("control")
    s = kic.load("four-bar").at({"A": 1.2}).linearize().state_space(outputs=["tip.x"])
    handed = s.to_control()
    assert isinstance(handed, control.StateSpace)
    for letter in "ABCD":
        assert np.array_equal(getattr(handed, letter), getattr(s, letter))
    labels = handed.state_labels, handed.input_labels, handed.output_labels
    assert labels == (["A", "A_rate"], ["A"], ["tip_x"])
    assert handed.dt == 0
    assert s.discretize(0.01).to_control().dt == 0.01


def test_python_control_agrees_with_scipy() -> None:
    """Steps of an arm with motors, continuous and in time steps; in series with what python-control makes."""
    control = pytest.importorskip("control")
    m = freeman()
    lin = m.at(CASE["phi"]).linearize(CASE["phid"], CASE["phidd"], motors=True)
    s = lin.state_space(outputs=["hand.x", "hand.y", "M1.current"])
    t = np.linspace(0, 0.2, 41)
    step = control.step_response(s.to_control(), t)
    assert step.state_labels[-1] == "M2_current"
    for k in range(3):
        one = StateSpace(s.A, s.B[:, k : k + 1], s.C, s.D[:, k : k + 1])
        exact = lsim(one, np.ones((41, 1)), t)[1]
        assert mismatch(step.outputs[:, k], exact.T) < 1e-9
    held = s.discretize(t[1])
    steps = control.step_response(held.to_control(), t)
    assert mismatch(steps.outputs, step.outputs) < 1e-9
    sampled = np.squeeze(dlsim(held.to_scipy(), np.ones((41, 3)))[1])
    assert mismatch(sampled, step.outputs.sum(axis=1).T) < 1e-9
    poles = np.sort_complex(control.poles(s.to_control()))
    assert mismatch(poles, np.sort_complex(s.eigenvalues)) < 1e-9
    # closed by python-control, with the names of its signals
    loop = control.interconnect(
        [s.to_control(), control.tf([1.0], [1.0], inputs=["hand_x"], outputs=["M0"])],
        inputs=["M1", "M2"],
        outputs=["hand_y", "M1_current"],
    )
    assert loop.nstates == 9
    closed = np.linalg.eigvals(s.A + s.B[:, :1] @ s.C[:1])
    assert mismatch(np.sort_complex(loop.poles()), np.sort_complex(closed)) < 1e-8


def test_invalid_arguments() -> None:
    rng = np.random.default_rng(14)
    m = geared(rng, kic.load("four-bar"), ["A"])
    m = replace(m, motors=[*m.motors, kic.Motor("P", ["D"])])
    c = m.at({"A": 1.2})
    with raises(kic.UnknownNameError, name="M9"):
        c.linearize(motors=True, wrt="A").state_space(inputs=["M9"], outputs="A")
    refuses(lambda: kic.load("four-bar").at().linearize().state_space(inputs=["A", "A"]), key="inputs")
    # the second motor's gearing changes, and its torque is open
    refuses(lambda: c.linearize([1.0], motors=True).state_space(), dof=1)
    one = replace(m, motors=[kic.Motor("P", ["A"])]).at({"A": 1.2})
    refuses(lambda: one.linearize(motors=True).state_space(outputs=["P.current"]), key="outputs")
    plain = one.linearize(motors=True).state_space()
    assert plain.inputs == ("P",)
    assert plain.B[1, 0] == pytest.approx(1 / float(one.dynamics().I[0, 0]))
    bare = m.at({"A": 1.2}).linearize().state_space()
    refuses(lambda: c.linearize().state_space(outputs=["A", "M0.current"]), key="motors", name="M0")
    for names in (lambda: ["A", "E"], lambda: iter(["A", "E"]), lambda: np.array(["A", "E"])):
        five = kic.load("five-bar").at().linearize(wrt=names()).state_space(inputs=names(), outputs=names())
        assert (five.inputs, five.outputs, five.states[:2]) == (("A", "E"),) * 3
    wrt = ["E", "A"]
    lin = kic.load("five-bar").at().linearize(wrt=wrt)
    before = lin.state_space(inputs=["tip.x"]).B
    wrt.reverse()
    assert np.array_equal(lin.state_space(inputs=["tip.x"]).B, before)
    found = kic.load("four-bar").find_equilibrium()
    assert found.fixed == ()
    assert found.linearization.state_space().A.shape == (2, 2)
    refuses(lambda: kic.load("five-bar").at().linearize().with_fixed("A").state_space(), key="fixed")
    assert bare.states == ("A", "A.rate")
    assert bare.inputs == ("A",)
    s = kic.load("four-bar").at().linearize().state_space()
    with raises(kic.InputError, columns=("shoulder", "elbow")):
        s.transfer(kic.load("horn-two-link").at([0.1, 1.0]).coefficients(["tip.x", "tip.y"], order=3))
    refuses(lambda: s.transfer(kic.load("four-bar").at().coefficients("D")), key="order")
    page = str(s.summary())
    assert "state space of A" in page
    assert "<table>" in s._repr_html_()
