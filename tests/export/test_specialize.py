"""Specialized evaluators: the numbers and the errors of the kernels, for one state and for batches."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from benchmarks.exported import states_near
from questions import arrays
from raising import raises
from representative_models import OTHER_MODELS
from scipy.spatial.transform import Rotation

import kic
from kic.errors import KernelLibraryWarning
from kic.export import specialize
from kic.kernels import library, linking
from kic.mechanism.configuration import model_of

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")

# models with every kind of closure, joint and law whose code is compiled in a second
MODELS = (
    "bevel-wrist", "bricard", "five-bar", "four-bar", "four-bar-motor", "geared-five-bar", "horn-two-link",
    "puma560", "rssr", "scara", "scotch-yoke",
)  # fmt: skip
QUESTIONS = ("coefficients", "dynamics", "inverse_dynamics", "forward_dynamics", "regressor")


def evaluator(m: kic.Mechanism, question: str, **options: Any) -> Any:
    """Return a prepared question about a model and its last body."""
    body = list(m.bodies)[-1].name
    of = {"coefficients": [body], "regressor": [[body]], "pose": [body], "operational_space": [body]}
    return getattr(m.prepare, question)(*of.get(question, ()), **options)


def motions(f: Any, count: int) -> list[np.ndarray]:
    """Return random arguments after the state."""
    rng = np.random.default_rng(3)
    return [rng.normal(size=(count, len(f.coordinates))) for _ in f.motion]


def difference(found: Any, known: Any, count: int) -> float:
    """Return the largest difference of members, relative to their size, or the median size if larger."""
    found, known = arrays(found), arrays(known)
    assert found.keys() == known.keys()
    worst = 0.0
    for key, b in known.items():
        a, b = found[key].reshape(count, -1), b.reshape(count, -1)
        assert (np.isnan(a) == np.isnan(b)).all()
        if b.size and not np.isnan(b).all():
            size = np.nanmax(abs(b), axis=1, initial=0.0)
            apart = np.nanmax(abs(a - b), axis=1, initial=0.0)
            worst = max(worst, (apart / np.maximum(size, np.median(size) or 1.0)).max())
    return worst


@pytest.mark.slow_for(*sorted({*OTHER_MODELS, *kic.model_names()} - {*MODELS}))
@pytest.mark.parametrize("name", kic.model_names())
def test_numbers_are_those_of_the_kernels(name: str) -> None:
    m = kic.load(name)
    states = states_near(m, 1000 if name in MODELS else 200)
    for question in QUESTIONS:
        if name in OTHER_MODELS and question == "dynamics":
            continue  # minutes of compilation
        f = evaluator(m, question)
        g, given = f.specialize(), motions(f, len(states))
        found = g(states, *given)
        # near singular configurations, both have rounding errors that pivots magnify
        assert difference(found, f(states, *given), len(states)) < 1e-10
        assert g.recovered <= 0.1 * len(states)
        assert f.recovered is None
        # bit for bit, for one state and any batch
        for part in (slice(7, 8), slice(3, 9)):
            some = arrays(g(states[part], *(r[part] for r in given)))
            for key, a in arrays(found).items():
                assert a[part].tobytes() == some[key].tobytes()
        one = arrays(g(states[7].copy(), *(r[7].copy() for r in given)))
        assert all(a[7].tobytes() == one[key].tobytes() for key, a in arrays(found).items())


@pytest.mark.parametrize(("name", "wrt"), [("five-bar", ["B", "D"]), ("puma560", ["joint2", "joint1"])])
def test_other_coordinates_and_tasks(name: str, wrt: list[str]) -> None:
    m = kic.load(name)
    wrt = wrt if name == "five-bar" else [*m.coordinates[::-1]]
    states = states_near(m, 50)
    for question in ("inverse_dynamics", "dynamics", "forward_dynamics"):
        f = evaluator(m, question, wrt=wrt)
        given = motions(f, len(states))
        g = f.specialize()
        assert difference(g(states, *given), f(states, *given), len(states)) < 1e-11
        assert g.recovered == 0
    f = m.prepare.pose(list(m.bodies)[-1].name)
    g = f.specialize()
    given = motions(f, len(states))
    assert difference(g(states, *given), f(states, *given), len(states)) < 1e-12
    assert repr(g) == f"specialized {f!r}"


def test_angles_of_any_size() -> None:
    end = kic.Point("end", "link", (0.0, 0.0, 0.0))
    m = kic.from_dh("arm", [{"joint": "J", "body": "link", "a": 1.0}], convention="standard", points=[end])
    g = m.prepare.coefficients("end.x", order=1).specialize()
    rng = np.random.default_rng(0)
    near = np.pi / 2 * np.arange(-200, 200)
    q = np.concatenate(
        [rng.uniform(-7, 7, 4000), rng.uniform(-1e5, 1e5, 4000), [1e5, -1e6], near, near + 1e-9]
    )
    rates = g(q[:, None])[g.names[0]]
    assert np.abs(rates.value[:, 0] - np.cos(q)).max() < 4.5e-16
    assert np.abs(rates.G[:, 0, 0] + np.sin(q)).max() < 4.5e-16
    # neighbours have no effect
    mixed = g(np.array([[0.5], [1e9], [np.nan], [0.5]]))[g.names[0]].value
    assert mixed[0].tobytes() == mixed[3].tobytes() == g(np.array([0.5]))[g.names[0]].value.tobytes()
    assert np.isnan(mixed[2]).all()


def test_states_that_the_code_rejects() -> None:
    m = kic.load("five-bar")
    states = states_near(m, 20)
    for question in ("inverse_dynamics", "forward_dynamics", "dynamics"):
        f = evaluator(m, question)
        given, g = motions(f, len(states)), f.specialize()
        with_nan = states.copy()
        with_nan[3, 0] = np.nan
        assert difference(g(with_nan, *given), f(with_nan, *given), len(states)) < 1e-12
        opened = states.copy()
        opened[5, 1] += 1e-3
        for bad in (opened, opened[5].copy()):
            own = given if bad.ndim > 1 else [r[0].copy() for r in given]
            with pytest.raises(kic.InputError) as known:
                f(bad, *own)
            with pytest.raises(kic.InputError) as found:
                g(bad, *own)
            assert str(found.value) == str(known.value)
            assert found.value.numbers == known.value.numbers
        assert g.recovered > 0
    # a state far from a bifurcation of the recorded pivots: stretched, the motors lose the mechanism
    f = evaluator(m, "inverse_dynamics")
    g = f.specialize(near=m.at({"A": 1.0, "E": 1.4}))
    for state in (states[2].tolist(), states[2].astype(complex), states[2][None].astype(np.float32)):
        a, b = g(state, [1.0, 2.0], [0.0, 0.0]), f(state, [1.0, 2.0], [0.0, 0.0])
        assert np.abs(a - b).max() < 1e-12
    for wrong in (np.zeros(3), np.tile(states[0], 2)):
        with pytest.raises(kic.InputError, match="`state` must have shape"):
            g(wrong, np.ones(2 * len(wrong) // 4), np.ones(2 * len(wrong) // 4))


@pytest.mark.parametrize("question", ["inverse_dynamics", "forward_dynamics", "dynamics"])
@pytest.mark.parametrize(
    ("name", "moves", "open_joint"),
    [
        ("bevel-wrist", {"drive3": 0.4}, "mesh3"),
        # both terms of the belt change alike, against its ratios -30 and 45
        ("scara", {"motor2": 0.3, "elbow": 0.3}, "belt2"),
    ],
)
def test_gears_that_do_not_mesh_are_refused(name: str, moves: dict, open_joint: str, question: str) -> None:
    m = kic.load(name)
    f, state = evaluator(m, question), m.at().state.copy()
    g, given = f.specialize(), [r[0] for r in motions(f, 1)]
    for joint, x in moves.items():
        state[model_of(m).tree.columns.index(joint)] += x
    with pytest.raises(kic.InputError, match=f"'{open_joint}' is open") as known:
        f(state, *given)
    with pytest.raises(kic.InputError) as found:
        g(state, *given)
    assert str(found.value) == str(known.value)


def test_recorded_near_a_singular_configuration() -> None:
    """The code answers no state at which the kernels would choose other pivots, or refuse the coordinates."""
    m = kic.load("four-bar")
    dead = 0.8031488053868653  # crank angle at which the coupler is in line, so that D cannot drive
    for question in ("inverse_dynamics", "forward_dynamics", "dynamics"):
        f = evaluator(m, question, wrt="D")
        g = f.specialize(near=m.at({"A": dead + 1e-9}))
        state, given = m.at({"A": dead + 1e-11}).state.copy(), [r[0] for r in motions(f, 1)]
        for e in (f, g):
            with pytest.raises(kic.SingularError, match="D cannot drive"):
                e(state, *given)
        state = m.at({"A": dead + 0.5}).state.copy()
        assert difference(g(state, *given), f(state, *given), 1) < 1e-12


@pytest.mark.parametrize("question", ["inverse_dynamics", "forward_dynamics", "dynamics"])
def test_gimbal_lock_is_refused(question: str) -> None:
    hand = kic.Body("hand", mass=1.0, com=(0.1, 0.2, 0.3), inertia=((0.1, 0, 0), (0, 0.2, 0), (0, 0, 0.25)))
    m = kic.Mechanism(
        "ball", bodies=[hand], joints=[kic.Joint("S", "spherical", ("ground", "hand"), (0, 0, 0))]
    )
    f = evaluator(m, question, wrt="hand.euler_xyz")
    near, lock = (m.at({"S": Rotation.from_euler("xyz", [0.3, a, 0.2])}) for a in (1.57, np.pi / 2 - 1e-4))
    g, given = f.specialize(near=near), [r[0] for r in motions(f, 1)]
    assert difference(g(near.state, *given), f(near.state, *given), 1) < 1e-11
    for e in (f, g):
        with pytest.raises(kic.SingularError, match="gimbal lock"):
            e(lock.state.copy(), *given)


def gantry() -> kic.Mechanism:
    """Return three slides, whose inertia does not depend on anything."""
    inertia = (0.1, 0.2, 0.3)
    bodies = [kic.Body(n, mass=1.0, com=(0.1, 0.2, 0.1), inertia=inertia) for n in "xyz"]
    joints = [
        kic.Joint(n.upper(), "prismatic", (before, n), (0, 0, 0), axis)
        for before, n, axis in zip(("ground", "x", "y"), "xyz", np.eye(3).tolist(), strict=True)
    ]
    return kic.Mechanism("gantry", bodies=bodies, joints=joints)


@pytest.mark.parametrize("question", ["dynamics", "inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("make", [gantry, lambda: kic.load("scara")])
def test_inputs_without_effect_are_read(make: Any, question: str) -> None:
    """The recorded program leaves out numbers that cancel; the kernels do not."""
    m = make()
    f = evaluator(m, question)
    g = f.specialize()
    given = [m.at().state, *(0.1 * np.ones(len(f.coordinates)) for _ in f.motion)]
    results = g(*given)
    for k, x in enumerate(given):
        for entry in range(x.size):
            for value in (np.nan, np.inf, -np.inf):
                strange = [a.copy() for a in given]
                strange[k][entry] = value
                known = arrays(f(*strange))
                for found in (
                    g(*strange),
                    g(*(a[None] for a in strange)),
                    g(*(a[None, None] for a in strange)),
                ):
                    for key, a in arrays(found).items():
                        np.testing.assert_array_equal(a.reshape(known[key].shape), known[key])
                found = g(*strange, out=results)
                np.testing.assert_array_equal(arrays(found)[key], known[key])


def test_overflow_is_refused() -> None:
    m = gantry()
    f = m.prepare.dynamics()
    for one in (f, f.specialize()):
        for state in (np.array([0, 1e200, 0.0]), np.array([[0, 1e200, 0.0]] * 3)):
            with raises(kic.InputError):
                one(state)
    g = (f := m.prepare.inverse_dynamics()).specialize()
    state, qd = np.zeros(3), np.array([0.0, 0.0, 1e308])
    for one in (f, g):
        with raises(kic.InputError):
            one(state, qd, 0 * qd)


def test_nearly_singular_inertia_is_left_to_the_kernels() -> None:
    """Heavy only at the end: I* of the arm is singular where it is straight."""
    masses = {"a": (1e-12, 1e-14), "b": (1e-12, 1e-14), "c": (1.0, 1e-7)}
    bodies = [
        kic.Body(n, mass=mass, com=(k + 1.0, 0, 0), inertia=(I, I, I))
        for k, (n, (mass, I)) in enumerate(masses.items())
    ]
    joints = [
        kic.Joint(n, "revolute", (before, body), (k, 0, 0), (0, 0, 1))
        for k, (n, before, body) in enumerate(zip("ABC", ("ground", "a", "b"), "abc", strict=True))
    ]
    m = kic.Mechanism("arm", bodies=bodies, joints=joints)
    f = m.prepare.forward_dynamics()
    g = f.specialize(near=m.at([0, 3e-4, 3e-4]))
    for bend in (3e-4, 3.3e-5):
        given = m.at([0, bend, bend]).state, np.array([0.3, 0.4, 0.1]), np.array([1.0, 2.0, 3.0])
        np.testing.assert_array_equal(g(*given), f(*given))
    assert g.recovered == 2


def test_arguments_may_receive_the_result() -> None:
    m = kic.load("five-bar")
    f = m.prepare.inverse_dynamics()
    g, state, q = f.specialize(), m.at().state.copy(), np.array([0.1, 0.2])
    given = np.array([0.5, 0.6])
    assert g(state, given, q, out=given) is given
    assert np.abs(given - f(state, [0.5, 0.6], q)).max() < 1e-14
    state[-1] += 0.5
    with pytest.raises(kic.InputError, match="'D' is open"):
        g(state, given, q, out=given)


def test_modules_do_not_share_symbols() -> None:
    specialize._kernel.cache_clear()
    flags = sys.getdlopenflags()
    try:
        sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
        found = []
        for name in ("horn-two-link", "five-bar"):
            m = kic.load(name)
            f = m.prepare.inverse_dynamics()
            given = m.at().state.copy(), np.array([0.5, 0.6]), np.array([0.1, 0.2])
            found.append(np.abs(f.specialize()(*given) - f(*given)).max())
    finally:
        sys.setdlopenflags(flags)
    assert max(found) < 1e-12


def test_without_motion_there_is_nothing_to_specialize() -> None:
    m = kic.load("horn-two-link").lock(["shoulder", "elbow"])
    assert m.prepare.dynamics().specialize()(np.zeros(0)).I.shape == (0, 0)


@pytest.mark.slow
def test_large_results_need_no_stack() -> None:
    m = kic.load("puma560")
    g = m.prepare.coefficients_and_dynamics([b.name for b in list(m.bodies)[-5:]], order=3).specialize()
    known, found = g(m.at().state).I, []
    usual = threading.stack_size(200 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(g(m.at().state).I))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(usual)
    assert found[0].tobytes() == known.tobytes()


def test_machine_code_checks_shapes() -> None:
    m = kic.load("five-bar")
    f = m.prepare.inverse_dynamics().specialize()
    kernel, state, q = f._program._kernel, m.at().state.copy(), np.ones(2)  # type: ignore[attr-defined]
    assert kernel(state, q, q, np.empty(2)) == 0
    for wrong in (
        (state[:3].copy(), q, q, np.empty(2)), (state, np.ones(3), q, np.empty(2)),
        (state, q, q, np.empty(1)), (np.tile(state, 2), q, q, np.empty(2)), (state, q, None, np.empty(2)),
        (state, q, q), (state[::2], q, q, q), (state, q, q, np.empty(2, np.float32)),
        (state[None], q, q, np.empty(2)), (),
    ):  # fmt: skip
        assert kernel(*wrong) == -1


def test_threads_pickles_and_results_in_place() -> None:
    m = kic.load("four-bar")
    states, f = states_near(m, 4096), m.prepare.dynamics()
    g = f.specialize()
    known = arrays(g(states))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: arrays(g(states)), range(8)):
            assert all(a.tobytes() == known[key].tobytes() for key, a in found.items())
    again = pickle.loads(pickle.dumps(g))
    assert arrays(again(states))["I"].tobytes() == known["I"].tobytes()
    r = g(states[0].copy())
    I = r.I
    g(states[1].copy(), out=r)
    assert I.tobytes() == known["I"][1].tobytes()
    other = g.specialize(near=m.at({"A": 1.0}))
    assert difference(other(states), known, len(states)) < 1e-12


def test_code_is_cached_and_damaged_files_are_replaced(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(library, "machine_folder", lambda: tmp_path / "machine")
    specialize._kernel.cache_clear()
    m = kic.load("four-bar")
    state = m.at().state.copy()
    known = m.prepare.dynamics().specialize()(state).I
    (built,) = tmp_path.glob("machine/specialized/*/*.so")
    specialize._kernel.cache_clear()
    with monkeypatch.context() as context:
        context.setattr(linking, "compiled_c", None)  # not called
        assert known == m.prepare.dynamics().specialize()(state).I
    specialize._kernel.cache_clear()
    content = built.read_bytes()
    built.unlink()  # this process has loaded it
    built.write_bytes(content[:-100])
    assert known == m.prepare.dynamics().specialize()(state).I
    # other users could change the file
    specialize._kernel.cache_clear()
    built.parent.chmod(0o777)
    before = {file: file.read_bytes() for file in built.parent.iterdir()}
    assert known == m.prepare.dynamics().specialize()(state).I
    assert before == {file: file.read_bytes() for file in built.parent.iterdir()}
    specialize._kernel.cache_clear()


@pytest.mark.parametrize("compiler", ["/nonexistent/cc", "false"])
def test_without_a_compiler_the_kernels_answer(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler)
    specialize._warn.cache_clear()
    m = kic.load("four-bar")
    f = m.prepare.inverse_dynamics()
    with pytest.warns(KernelLibraryWarning, match=r"cannot be specialized: .*Install a C compiler"):
        g = f.specialize()
    assert g.recovered is None
    state = m.at().state
    assert g(state, [1.0], [2.0]) == f(state, [1.0], [2.0])


def test_what_cannot_be_specialized() -> None:
    m = kic.load("four-bar")
    for f in (m.prepare.position(), m.prepare.motion("tip"), m.prepare.regressor(["A.friction"])):
        with pytest.raises(kic.InputError, match="Specialize"):
            f.specialize()
    with pytest.raises(kic.InputError, match="`near` must be one configuration"):
        m.prepare.dynamics().specialize(near=m.at({"A": [0.1, 0.2]}))


@pytest.mark.slow
def test_generated_code_is_clean(tmp_path) -> None:
    """No undefined behaviour, and no access out of bounds, with arrays of exact length."""
    m = kic.load("five-bar")
    program = m.prepare.forward_dynamics()._program  # type: ignore[attr-defined]
    (tmp_path / "evaluate.h").write_text(specialize._text(*specialize._trace(program, m.at().state), 1))
    state = ", ".join(map(repr, m.at().state.tolist()))
    (tmp_path / "main.c").write_text(
        f"""\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int specialized_words(const int64_t *words, int64_t *result);
int main(void)
{{
    const double start[] = {{{state}}};
    for (int64_t count = 1; count < 11; count++) {{
        int64_t sizes[] = {{sizeof start / 8, 2, 2, 2}}, words[28] = {{0}}, result = 0;
        double *data[4];
        for (int k = 0; k < 4; k++) {{
            data[k] = malloc(8 * count * sizes[k]);
            words[7 * k + 2] = count * sizes[k], words[7 * k + 4] = (int64_t)(intptr_t)data[k];
            for (int64_t j = 0; j < count * sizes[k]; j++)
                data[k][j] = k ? 0.5 : start[j % sizes[0]];
        }}
        specialized_words(words, &result);
        if (result)
            return 1;
        words[2]++;
        specialized_words(words, &result);
        if (result != -1)
            return 2;
        for (int k = 0; k < 4; k++)
            free(data[k]);
    }}
    return 0;
}}
"""
    )
    command = ["cc", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-fsanitize=address,undefined"]
    command += [
        "-fno-sanitize-recover=all",
        f"-I{tmp_path}",
        str(specialize._SOURCE),
        str(tmp_path / "main.c"),
    ]
    subprocess.run([*command, "-o", str(tmp_path / "main"), "-lm"], check=True)
    subprocess.run([str(tmp_path / "main")], check=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
