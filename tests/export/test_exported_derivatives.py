"""Derivatives, closure equations and root finders of exported functions, against evaluators."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_text import needs_compiler, run_own_test, translated
from raising import raises

import kic

# rounding errors of central differences: eps^(2/3) of the size, times a margin and the pivots
DIFFERENCE, DIFFERENCE_RTOL = 6e-6, 1e-7
GUIDE = Path(kic.__file__).parent.parent / "notebooks" / "guides" / "export.md"
MODELS = ("four-bar", "five-bar", "puma560", "three-rps", "rssr", "scara")


def given(m: kic.Mechanism, names: list[str], seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = m._model.coordinate_values(m.coordinates, m.at().state[None])[0].real
    size = np.minimum(m._model.transfer_for(None).row_sizes, 1.0)
    return {"q": q + 0.05 * size, **{name: rng.normal(size=q.shape) for name in names}}


def differences(f: kic.results.ExportedFunction, x: dict[str, np.ndarray], out: str, by: str) -> np.ndarray:
    columns = []
    for k in range(x[by].size):
        step = DIFFERENCE * np.eye(x[by].size)[k]
        high, low = (f(**{**x, by: x[by] + sign * step})[out] for sign in (1, -1))
        columns.append((high - low) / (2 * DIFFERENCE))
    return np.array(columns).T


def same(found: np.ndarray, known: np.ndarray, rtol: float, size: float = 0.0) -> None:
    assert found.shape == known.shape
    assert np.abs(found - known).max() <= rtol * max(size, float(np.abs(known).max()))


@pytest.mark.slow_for("three-rps", "puma560")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("question", ["inverse_dynamics", "forward_dynamics"])
def test_first_derivatives(name: str, question: str) -> None:
    """d(qdd, T)/d(q, qd, ...) equal differences of the function itself; loops are closed."""
    m = kic.load(name)
    out, second = ("effort", "qdd") if question == "inverse_dynamics" else ("qdd", "effort")
    f = getattr(m.export, question)(close=True, derivatives=1).to_numpy()
    x = given(m, ["qd", second])
    r = f(**x)
    assert r["guard"] > 1
    for by in x:
        found, known = r[f"{out}.d_{by}"], differences(f, x, out, by)
        same(found, known, DIFFERENCE_RTOL, float(np.abs(r[out]).max()))
    if question == "inverse_dynamics":
        state = m.at(x["q"]).state
        d = m.prepare.dynamics()(state)
        same(r["effort.d_qdd"], d.I, 1e-10)
        damping = d.damping if d.damping is not None else 0.0
        same(r["effort.d_qd"], np.einsum("kab,a->kb", d.P + d.P.swapaxes(1, 2), x["qd"]) + damping, 1e-9)


@pytest.mark.slow_for("puma560", "rssr")
@pytest.mark.parametrize("name", ["four-bar", "five-bar", "puma560", "rssr"])
def test_weighted_second_derivatives(name: str) -> None:
    """The gradient and Hessian of λᵀ qdd are the weighted Jacobian and its derivative."""
    m = kic.load(name)
    f = m.export.forward_dynamics(close=True, derivatives=2).to_numpy()
    x = given(m, ["qd", "effort"])
    size = x["q"].size
    x["weights"] = np.random.default_rng(8).normal(size=size)
    r = f(**x)
    parts = ("q", "qd", "effort")
    J = np.concatenate([r[f"qdd.d_{by}"] for by in parts], axis=1)
    same(r["gradient"], x["weights"] @ J, 1e-11)
    known = np.concatenate([differences(f, x, "gradient", by) for by in parts], axis=1)
    same(r["hessian"], known, 20 * DIFFERENCE_RTOL, float(np.abs(J).max()))
    same(r["hessian"], r["hessian"].T, 1e-9)
    assert f.labels["hessian"][0] == f"q.{m.coordinates[0]}"


def test_weighted_hessian_of_a_point() -> None:
    """λᵀ ∂²u/∂q² is the contraction of H."""
    m = kic.load("five-bar")
    f = m.export.coefficients("tip", close=True, derivatives=2).to_numpy()
    q, weights = [1.25, 1.6], np.array([0.3, -2.0, 0.7])
    r, c = f(q=q, weights=weights), m.at([1.25, 1.6]).coefficients("tip")
    assert f.nonzero["tip.value.d_q"].tolist() == [[True, True], [True, True], [False, False]]
    same(r["tip.value.d_q"], c.G, 1e-12)
    same(r["hessian"], np.einsum("p,pmn->mn", weights, c.H), 1e-11)


def test_derivatives_keep_parameters() -> None:
    m = kic.load("five-bar")
    f = m.export.inverse_dynamics(close=True, derivatives=1, parameters="coupler.mass").to_numpy()
    heavy = m.replace("coupler", mass=0.02)
    other = heavy.export.inverse_dynamics(close=True, derivatives=1).to_numpy()
    x = given(m, ["qd", "qdd"])
    same(f(**x, parameters=0.02)["effort.d_q"], other(**x)["effort.d_q"], 1e-11)


@pytest.mark.parametrize("question", ["actuation_map", "coefficients"])
def test_parameters_of_every_question(question: str) -> None:
    """Parameters are the last input wherever a question adds its own inputs."""
    m = kic.load("five-bar")
    options = {"of": ["B", "D"], "parameters": ["coupler.mass", "C.at.x"]}
    values = [0.02, m["C"].at[0]]
    f = getattr(m.export, question)(**options).to_numpy()
    if question == "coefficients":
        same(f(m.at().state, values)["B.G"], m.at().coefficients("B").G, 1e-12)
        return
    r = f(q=[1.25, 1.6], qd=[0.3, 0.1], effort=[1.0, 2.0], parameters=values)
    heavy = m.replace("coupler", mass=0.02).at([1.25, 1.6])
    same(r["inertia"], heavy.dynamics().I, 1e-11)
    same(r["J"], heavy.coefficients(["B", "D"]).G, 1e-11)


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "three-rps", "gough-stewart", "puma560"])
def test_closure_equations(name: str) -> None:
    """They vanish on closed states only, and their derivative there has full rank; q is that of the state."""
    m = kic.load(name)
    f = m.export.position(close="equations").to_numpy()
    state = m.at(given(m, [])["q"]).state
    r = f(state)
    assert np.abs(r["closure"]).max(initial=0.0) < 1e-11
    same(r["q"], given(m, [])["q"], 1e-11)
    assert r["closure"].size + r["q"].size == state.size
    step = DIFFERENCE * np.eye(state.size)
    both = [np.concatenate([a["closure"], a["q"]], axis=1).T for a in (f(state + step), f(state - step))]
    assert np.linalg.matrix_rank((both[0] - both[1]) / (2 * DIFFERENCE), tol=1e-4) == state.size
    if r["closure"].size:
        assert np.abs(f(state + 1e-3)["closure"]).max() > 1e-6
    whole = m.export.inverse_dynamics(close="equations").to_numpy()
    assert list(whole.outputs) == ["effort", "closure", "q", "guard"]


@pytest.mark.parametrize("rootfinder", ["fast_newton", "chords"])
def test_root_finder_of_casadi(rootfinder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and derivatives equal those of evaluators, and CasADi writes C of them."""
    monkeypatch.chdir(tmp_path)
    casadi = pytest.importorskip("casadi", reason="needs CasADi: pip install -e '.[casadi]'")
    m = kic.load("five-bar")
    f = m.export.coefficients("tip", close=True).to_casadi(rootfinder=rootfinder)
    near, c = m.at().state, m.at([1.25, 1.6]).coefficients("tip")
    q = casadi.MX.sym("q", 2)
    tip = f(q, near)[0]
    J = casadi.Function("J", [q], [casadi.jacobian(tip, q)])
    same(np.array(J([1.25, 1.6])), c.G, 1e-9)
    H = casadi.Function("H", [q], [casadi.hessian(casadi.dot(casadi.DM([0.3, -2, 0.7]), tip), q)[0]])
    same(np.array(H([1.25, 1.6])), np.einsum("p,pmn->mn", [0.3, -2.0, 0.7], c.H), 1e-8)
    names = f.name_out()
    r = dict(zip(names, f([1.25, 1.6], near), strict=True))
    assert float(r["residual"]) < 1e-11
    dynamics = m.export.forward_dynamics(close=True, derivatives=1).to_casadi(rootfinder=rootfinder)
    assert "qdd_d_effort" in dynamics.name_out()
    file = f.factory("slope", f.name_in(), ["jac:tip_value:q"]).generate("slope.c", {"with_header": False})
    assert "#error" not in Path(file).read_text()
    with raises(kic.InputError, key="rootfinder"):
        m.export.dynamics().to_casadi(rootfinder="fast_newton")
    with raises(kic.InputError, key="rootfinder"):
        m.export.dynamics(close=True).to_casadi(rootfinder="bisection")


@pytest.mark.parametrize("name", ["five-bar", "rssr"])
def test_chords_of_casadi(name: str) -> None:
    """First and second derivatives are those of Newton steps, also by SX; third ones are not finite."""
    casadi = pytest.importorskip("casadi", reason="needs CasADi: pip install -e '.[casadi]'")
    m, near = kic.load(name), kic.load(name).at().state
    q0 = m._model.coordinate_values(m.coordinates, near[None])[0].real + 0.02
    found = {}
    for kind, rootfinder in ((casadi.SX, None), (casadi.MX, "chords"), (casadi.SX, "chords")):
        f = m.export.inverse_dynamics(close=True).to_casadi(rootfinder=rootfinder)
        q = kind.sym("q", q0.size)
        for n, out in enumerate((f(q, q, 2, near)[0], f(q, 1, 2, near)[f.name_out().index("state")])):
            y = casadi.dot(casadi.DM(np.linspace(0.5, -1.0, out.size1())), out)
            H, g = casadi.hessian(y, q)
            third = casadi.jacobian(casadi.vec(H), q)
            x = [np.array(a) for a in casadi.Function("F", [q], [g, H, third])(q0)]
            known = found.setdefault(n, x)
            same(x[0], known[0], 1e-10)
            same(x[1], known[1], 1e-9)
            assert np.isfinite(known[2]).all()
            assert rootfinder is None or not np.isfinite(x[2]).any()


@pytest.mark.slow_for("options0")
@needs_compiler
@pytest.mark.parametrize("options", [{"close": True, "derivatives": 2}, {"close": "equations"}])
def test_c(options: dict[str, Any], tmp_path: Path) -> None:
    """The test program, which compares all outputs, passes without warnings of the compiler."""
    code = kic.load("five-bar").export.forward_dynamics(**options).to_c()
    run_own_test(code, tmp_path, "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror")


@pytest.mark.slow
def test_jax() -> None:
    jax = pytest.importorskip("jax", reason="needs JAX: pip install -e '.[jax]'")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        m = kic.load("four-bar")
        x = {**given(m, ["qd", "effort"]), "weights": np.array([0.7])}
        options = {"close": True, "derivatives": 2}
        found = m.export.forward_dynamics(**options).to_jax()(**x)
        known = m.export.forward_dynamics(**options).to_numpy()(**x)
        for key in ("qdd.d_q", "gradient", "hessian"):
            same(np.asarray(found[key]), known[key], 1e-10)
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.slow
@pytest.mark.skipif(not GUIDE.exists(), reason="guides are not part of an installed package")
def test_synthesis_of_the_guide() -> None:
    """The program finds the dimensions of the linkage whose curve is given."""
    jax = pytest.importorskip("jax", reason="needs JAX: pip install -e '.[jax]'")
    text = GUIDE.read_text(encoding="utf-8")
    (program,) = (
        p for p in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "slope" in p
    )
    before, names = jax.config.jax_enable_x64, dict[str, Any]()
    jax.config.update("jax_enable_x64", True)
    try:
        exec(program, names)
    finally:
        jax.config.update("jax_enable_x64", before)
    assert names["found"].nfev < 20
    assert np.allclose(names["found"].x, [0.12, 0.36, 0.30, 0.25], rtol=1e-9)


def test_sympy_gives_the_closure_equations_of_a_four_bar() -> None:
    """Two expressions in the coordinates of the tree vanish on closed states."""
    pytest.importorskip("sympy")
    m = kic.load("four-bar")
    r = m.export.position(close="equations").to_sympy()
    state = m.at({"A": 0.5}).state
    at = dict(zip(sorted({s for x in r["closure"] for s in x.free_symbols}, key=str), state, strict=True))
    assert len(r["closure"]) == 2
    assert max(abs(float(x.subs(at))) for x in r["closure"]) < 1e-12


def test_text_of_c_has_the_derivatives() -> None:
    m = kic.load("five-bar")
    options = {"close": True, "derivatives": 1}
    code = m.export.forward_dynamics(**options).to_c()
    f, x = m.export.forward_dynamics(**options).to_numpy(), given(m, ["qd", "effort"])
    known = f(**x)
    found = {name: np.zeros(max(1, int(np.prod(shape)))) for name, shape in f.outputs.items()}
    with np.errstate(invalid="ignore"):
        translated(code.source)[code.name](x["q"], x["qd"], x["effort"], m.at().state, *found.values())
    for name in ("qdd", "qdd.d_q", "qdd.d_qd", "qdd.d_effort"):
        assert np.abs(found[name] - known[name].ravel()).max() < 1e-11 * np.abs(known[name]).max()
