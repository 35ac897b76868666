"""Exported functions equal kic on all shipped models, in NumPy, C, CasADi, JAX and SymPy."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_text import COMPILER, compile_c, needs_compiler, run_own_test, translated
from questions import answered
from raising import raises
from representative_models import OTHER_MODELS
from sampling import STEP, stepped

import kic
from kic.export import c_source
from kic.ui.cli.main import main

STRICT = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wpedantic",
    "-Werror",
    "-fsanitize=undefined,address",
]
# rounding errors of a few thousand operations, times a margin; H and D of closed mechanisms grow by 1/pivot
RTOL = 1e-11
SPREAD = 0.2
# models whose many columns leave a step of 2e-5 without proof
UNPROVED = {"gough-stewart", "stewart-6r"}


def sampled(m: kic.Mechanism, count: int, seed: int = 3) -> np.ndarray:
    """Return closed states (count, S) at random configurations near that of the reference."""
    rng, states, spread = np.random.default_rng(seed), [], SPREAD
    middle = m._model.coordinate_values(m.coordinates, m.at().state[None])[0]
    sizes = np.minimum(m._model.transfer_for(None).row_sizes, 1.0)
    while len(states) < count:
        try:
            states.append(m.at(middle + spread * sizes * rng.uniform(-1, 1, middle.shape)).state)
        except kic.KicError:
            spread *= 0.8
    return np.array(states)


def outputs(m: kic.Mechanism) -> list[str]:
    """Return the points that move, or the last body."""
    tree = m._model.tree
    found = [p.name for p in m.points if tree.frame[p.body] >= 0]
    return found[:2] or [f"{m.bodies[-1].name}.wz"]


def same(found: np.ndarray, known: np.ndarray, size: float = 0.0, rtol: float = RTOL) -> None:
    """Require equal arrays, relative to their largest entry over all members, or a size."""
    assert np.array_equal(np.isnan(found), np.isnan(known))
    size = max(size, float(np.nanmax(np.abs(known), initial=0.0)))
    assert np.nanmax(np.abs(found - known), initial=0.0) <= rtol * size


@pytest.mark.slow_for("gough-stewart", "three-finger-hand", "two-arms", *OTHER_MODELS)
@pytest.mark.parametrize("name", kic.model_names())
def test_every_model(name: str) -> None:
    """G, H, I*, P*, loads, efforts, accelerations and closed states equal those of evaluators."""
    m = kic.load(name)
    states, of, rng = sampled(m, 4), outputs(m), np.random.default_rng(5)
    f, c = m.export.coefficients(of, near=m.at()).to_numpy(), kic.Configuration(m._model, (4,), states)
    found = f(states)
    assert found["guard"].min() > 1
    for row in of:
        r = c.coefficients(row)
        for letter, known in (("value", r.values), ("G", r.G), ("H", r.H)):
            same(found[f"{row}.{letter}"], known, 1.0)
    try:
        d = c.dynamics()
    except kic.InertiaError:
        with raises(kic.InertiaError):
            m.export.dynamics().to_numpy()
        return
    condition = np.linalg.cond(d.I).max() if np.abs(d.I).any() else 0.0
    for question in ("dynamics", "inverse_dynamics", *["forward_dynamics"] * bool(condition)):
        f = getattr(m.export, question)().to_numpy()
        x = {k: rng.normal(size=(4, *shape)) for k, shape in f.inputs.items()} | {"state": states}
        found = f(**x)
        for key, known in answered(c, question, of, "", x).items():
            size, rtol = np.abs(d.I).max() * (key == "P"), RTOL * (condition if key == "qdd" else 1.0)
            same(found[key], known, float(size), rtol)
    q = m._model.coordinate_values(m.coordinates, states)
    closed = m.export.position(steps=8).to_numpy()(q)
    sure = closed["radius"] < 1e-8
    assert sure.mean() > 0.5
    rows = m._model.coordinate_values(m.coordinates, closed["state"][sure])
    same(np.exp(1j * rows).real, np.exp(1j * q[sure]).real, 1.0, 1e-7)
    # a small step is proved to stay on its branch
    near, step = states[0], 2e-5 * m._model.transfer_for(None).row_sizes
    small = m.export.position(near=m.at(q[0])).to_numpy()(q[0] + step, near=near)
    if not np.isnan(small["branch"]):
        same(small["state"], m.prepare.position()(near, q[0] + step), 1.0, 1e-9)
    assert np.isnan(small["branch"]) <= (name in UNPROVED)


def test_coordinates_of_a_task() -> None:
    m = kic.load("five-bar")
    wrt = ["tip.x", "tip.y"]
    states = sampled(m, 3)
    found = m.export.dynamics(wrt=wrt).to_numpy()(states)
    same(found["P"], m.prepare.dynamics(wrt=wrt)(states).P)
    q = m._model.coordinate_values(tuple(wrt), states)
    effort = m.prepare.inverse_dynamics(wrt=wrt)(states, q, q)
    found = m.export.inverse_dynamics(wrt=wrt, close=True).to_numpy()(q, q, q)
    same(found["effort"], effort)
    same(found["state"], states)


@pytest.mark.slow_for("panda-flange")
@pytest.mark.parametrize(("name", "of"), [("panda", "flange"), ("five-bar", "tip.x"), ("puma560", "link6")])
def test_redundancy_exported_elsewhere(name: str, of: str) -> None:
    """Norms and first orders, by pivots that were chosen at another configuration."""
    m, rng = kic.load(name), np.random.default_rng(6)
    middle = m._model.coordinate_values(m.coordinates, m.at().state[None])[0]
    near, c = m.at(middle + 0.15), m.at(middle + 0.2)
    rows, columns = len(c.coefficients(of, order=1).rows), len(m.coordinates)
    ud, udd, z, zd = (rng.normal(size=n) for n in (rows, rows, columns, columns))
    for order, x, known in ((2, (ud, udd, z, zd), (ud, udd, z, zd)), (1, (ud, 0 * z), (ud,))):
        found = m.export.resolve_redundancy(of, order=order, near=near).to_numpy()(c.state, *x)
        r = m.prepare.resolve_redundancy(of, order=order)(c.state, *known)
        for key in ("qd", "qdd")[:order]:
            same(found[key], getattr(r, key), rtol=1e-9)


def test_actuation_map_conserves_power() -> None:
    """Motor efforts equal inverse dynamics in the motors for efforts of inverse dynamics in the joints."""
    m = kic.load("five-bar")
    motors, joints = ["A", "E"], ["B", "D"]
    f = m.export.actuation_map(joints, wrt=motors).to_numpy()
    c, qd, qdd = m.at({"A": 1.25, "E": 1.6}), np.array([0.3, -0.7]), np.array([5.0, 2.0])
    effort = c.inverse_dynamics(*c.motion(joints, qd, qdd, wrt=motors)[1:3], wrt=joints)
    r, known = f([1.25, 1.6], qd, effort), c.coefficients(joints)
    same(r["value"], known.values)
    same(r["J"], known.G)
    same(r["Jdot"], np.einsum("pmn,m->pn", known.H, qd))
    same(r["inertia"], c.dynamics().I)
    same(r["motor_effort"], c.inverse_dynamics(qd, qdd, wrt=motors))
    back = m.export.actuation_map(["A", "E"], wrt=["B", "D"], inertia=False).to_numpy()
    assert "inertia" not in back.outputs
    same(back(r["value"], r["J"] @ qd, r["motor_effort"])["J"] @ r["J"], np.eye(2))


def test_chosen_outputs_need_fewer_operations() -> None:
    m = kic.load("puma560")
    whole, inertia = m.export.dynamics().to_numpy(), m.export.dynamics(outputs="I").to_numpy()
    assert [*inertia.outputs] == ["I", "guard"]
    assert inertia.operations < 0.8 * whole.operations
    state = m.at().state
    same(inertia(state)["I"], whole(state)["I"])
    closed = m.export.motion(["tool", "wrist"], outputs=["tool.jerk", "wrist.value"]).to_numpy()
    assert [*closed.outputs] == ["tool.jerk", "wrist.value", "guard"]


PARAMETERS = {
    "scara": ["gravity.z"],
    "five-bar": ["coupler.mass", "coupler.com.x", "C.at.x", "gravity.y", "coupler.com.y"],
    "puma560": ["link6.mass", "link3.inertia.zz", "gravity.z", "link6.com.z"],
    "gough-stewart": ["platform.mass", "platform.com.z", "gravity.z"],
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_equal_a_new_mechanism(name: str) -> None:
    """Parameters changed after the export give the results of a mechanism with these numbers."""
    m, names = kic.load(name), PARAMETERS[name]
    f = m.export.inverse_dynamics(parameters=names).to_numpy()
    known = np.array(f._export.inputs[-1].default)
    assert f.labels["parameters"] == tuple(names)
    rng = np.random.default_rng(2)
    changed = known + 0.05 * rng.uniform(0.5, 1, known.shape) * np.where(known == 0, 1, np.abs(known))
    other = m
    for parameter, value in zip(names, changed, strict=True):
        part, key, *rest = parameter.split(".")
        if part == "gravity":
            vector = np.array(other.gravity)
            vector["xyz".index(key)] = value
            other = other.replace(gravity=tuple(vector))
            continue
        field = np.array(getattr(other[part], key))
        if rest:
            field[{"x": 0, "y": 1, "z": 2, "zz": (2, 2)}[rest[0]]] = value  # type: ignore[index]
        other = other.replace(part, **{key: tuple(field.tolist()) if rest else float(value)})
    states = sampled(other, 3)
    qd, qdd = rng.normal(size=(2, 3, len(f.labels["qd"])))
    same(f(states, qd, qdd, changed)["effort"], other.prepare.inverse_dynamics()(states, qd, qdd))


def test_parameters_of_closed_loops() -> None:
    m = kic.load("five-bar")
    f = m.export.inverse_dynamics(close=True, parameters=["coupler.mass", "C.at.x"]).to_numpy()
    other = m.replace("coupler", mass=0.01)
    c, qd, qdd = other.at({"A": 1.25, "E": 1.6}), [2.0, 3.0], [1.0, 0.5]
    r = f([1.25, 1.6], qd, qdd, [0.01, m["C"].at[0]])
    same(r["effort"], c.inverse_dynamics(qd, qdd))
    assert np.isnan(r["radius"])  # lever arms of other dimensions are not known


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("name", ["four-bar", "five-bar", "three-rps", "puma560"])
def test_c_is_clean_and_passes_its_own_test(name: str, precision: str, tmp_path: Path) -> None:
    """Warnings are errors, and sanitizers find no undefined behaviour."""
    for question in ("inverse_dynamics", "forward_dynamics", "position"):
        asked = getattr(kic.load(name).export, question)(close=True, name=f"f_{question}")
        run_own_test(asked.to_c(precision=precision), tmp_path, *STRICT)


def compiled(code: kic.results.CSource, folder: Path) -> Callable[..., None]:
    """Return the function of a compiled library, of arrays in its precision."""
    source, library = (folder / f"{code.name}{ending}" for ending in (".c", ".so"))
    code.save(folder)
    compile_c("-std=c99", "-O1", "-shared", "-fPIC", source, "-o", library, "-lm")
    function = getattr(ctypes.CDLL(str(library)), code.name)
    return lambda *arrays: function(*(a.ctypes.data_as(ctypes.c_void_p) for a in arrays))


@pytest.mark.parametrize("way", [pytest.param("compiled", marks=needs_compiler), "text"])
@pytest.mark.parametrize(
    ("precision", "rtol", "most"), [("double", RTOL, 40), ("double", RTOL, 3000), ("float", 1e-4, 3000)]
)
def test_c_equals_kic_at_other_configurations(
    precision: str, rtol: float, most: int, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the list is divided among several functions of C."""
    monkeypatch.setattr(c_source, "_PART_MAX", most)
    m = kic.load("five-bar")
    code = m.export.inverse_dynamics(close=True).to_c(precision=precision)
    assert ("_part1" in code.source) == (most < 100)
    function = compiled(code, tmp_path) if way == "compiled" else translated(code.source)[code.name]
    shapes = m.export.inverse_dynamics(close=True).to_numpy().outputs
    kind = np.dtype("float32" if (way, precision) == ("compiled", "float") else "double")
    rng = np.random.default_rng(4)
    for state in sampled(m, 5):
        q = m._model.coordinate_values(m.coordinates, state[None])[0]
        qd, qdd = rng.normal(size=(2, 2))
        found = {name: np.zeros(max(1, int(np.prod(shape))), kind) for name, shape in shapes.items()}
        with np.errstate(invalid="ignore"):
            function(*(np.ascontiguousarray(a, kind) for a in (q, qd, qdd, m.at().state)), *found.values())
        same(found["effort"], m.prepare.inverse_dynamics()(state, qd, qdd), rtol=rtol)
        same(found["state"], state, 1.0, rtol)
        assert found["guard"] > 1


@needs_compiler
@pytest.mark.parametrize("flags", [("-std=c99",), ("-std=gnu99", "-trigraphs")])
def test_names_are_valid_in_comments_of_c(flags: tuple[str, ...]) -> None:
    """They neither end the comment nor cause warnings, also at the end of a line."""
    names = ["*/ int x; /*", "/*", "//", "*", "/", "??/", "???/", "a\\", "\\", "%s", '"', "é", "**//"]
    bodies = [kic.Body(f"b{k}", mass=1.0, com=(k, 0, 0), inertia=(1, 1, 1)) for k in range(len(names))]
    below = ["ground", *(body.name for body in bodies)]
    joints = [
        kic.Joint(name, "prismatic", (below[k], below[k + 1]), (k, 0, 0), (1, 0, 0))
        for k, name in enumerate(names)
    ]
    for name in names:
        m = kic.Mechanism(name, bodies, joints)
        header = m.export.inverse_dynamics(name="f").to_c().header
        assert COMPILER is not None
        strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", "c", "-"]
        command = [COMPILER, *flags, *strict]
        done = subprocess.run(
            command, input=header, capture_output=True, text=True, check=False, encoding="utf-8"
        )
        assert done.returncode == 0, done.stderr


@needs_compiler
def test_the_command_writes_files_that_compile(tmp_path: Path) -> None:
    from click.testing import CliRunner

    arguments = f"export four-bar --c {tmp_path} --question coefficients --of tip --close --steps 3".split()
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert {p.name for p in tmp_path.iterdir()} == {
        f"four_bar_coefficients{e}" for e in (".h", ".c", "_test.c")
    }
    assert "k < 3;" in (tmp_path / "four_bar_coefficients.c").read_text()
    for more, code, message in (
        (["--question", "coefficients"], 2, "--of must be given"),
        (["--question", "sweep"], 2, "forward_dynamics"),
        (["--question", "position", "--order", "2"], 2, "--order must be left out"),
        (["--steps", "3"], 1, "--steps requires --close"),
    ):
        wrong = CliRunner().invoke(main, [*arguments[:4], *more])
        assert wrong.exit_code == code
        assert message in " ".join(wrong.output.split())
    for more in ("coefficients_and_dynamics --of tip", "pose --of coupler", "dynamics --output I"):
        done = CliRunner().invoke(main, [*arguments[:4], "--question", *more.split()])
        assert done.exit_code == 0
    assert " P[" not in (tmp_path / "four_bar_dynamics.h").read_text()


def test_guard_of_a_distant_configuration() -> None:
    """The guard falls below one at a singular configuration; without a solution there is no radius."""
    m = kic.load("four-bar")
    f = m.export.coefficients("tip").to_numpy()
    state = m.at().state
    along = f(state + np.linspace(0, 2 * np.pi, 4001)[:, None] * [0, 0, 1])  # a sweep through singular states
    assert f(state)["guard"] == pytest.approx(1000)
    assert along["guard"].min() < 1
    m = kic.load("five-bar")
    far = m.export.position(wrt=["tip.x", "tip.y"]).to_numpy()(m.at().value("tip")[:2] + 1e3)
    assert np.isnan(far["radius"])
    assert not far["residual"] < 1e-3


def test_certified_radius_holds_the_solution() -> None:
    m = kic.load("five-bar")
    q = m._model.coordinate_values(m.coordinates, m.at().state[None])[0] + 0.05
    exact = m.at(q).state
    for steps in (1, 2, 3, 4):
        found = m.export.position(steps=steps).to_numpy()(q)
        apart = np.abs(found["state"] - exact).sum()
        assert steps == 1 or apart <= found["radius"]
    assert found["radius"] < 1e-10


@pytest.mark.parametrize("name", ["a--b", "a__b", "--> */", "é", "_", "it's", "1", "a-", "jac"])
@pytest.mark.parametrize("rootfinder", [None, "chords"])
def test_names_of_functions_of_casadi(name: str, rootfinder: str | None) -> None:
    pytest.importorskip("casadi", reason="needs CasADi: pip install -e '.[casadi]'")
    m = kic.load("four-bar").replace(name=name)
    f = m.export.coefficients("tip", close=True).to_casadi(rootfinder=rootfinder)
    assert re.fullmatch("[a-z](_?[a-z0-9])*", f.name())


@pytest.mark.parametrize("name", ["a--b", "a__b", "--> */", "é", "_", "it's", "1", "a-", "double", "a b"])
def test_identifiers(name: str) -> None:
    """They begin with a letter, and have no two underscores in a row, which C++ reserves."""
    assert re.fullmatch("[a-z](_?[a-z0-9])*", c_source.identifier(name))


def test_casadi() -> None:
    casadi = pytest.importorskip("casadi", reason="needs CasADi: pip install -e '.[casadi]'")
    m = kic.load("four-bar")
    f = m.export.coefficients("tip", order=3, close=True).to_casadi()
    c = m.at({"A": 0.5})
    r = c.coefficients("tip", order=3)
    q = casadi.SX.sym("q")
    names = dict(zip(f.name_out(), f(q, m.at().state), strict=True))
    derivative = [casadi.jacobian(names[f"tip_{k}"], q) for k in ("value", "G", "H")]
    found = [np.array(a).ravel() for a in casadi.Function("f", [q], derivative)(0.5)]
    for a, known in zip(found, (r.G, r.H, r.D), strict=True):
        same(a, known.ravel())
    assert f.sparsity_out("tip_G").nnz() == 2  # the coupler moves in a plane


@pytest.fixture
def jax() -> Iterator[Any]:
    """JAX in double precision."""
    found = pytest.importorskip("jax", reason="needs JAX: pip install -e '.[jax]'")
    before = found.config.jax_enable_x64
    found.config.update("jax_enable_x64", True)
    yield found
    found.config.update("jax_enable_x64", before)


@pytest.mark.slow
@pytest.mark.parametrize("callback", [False, True])
@pytest.mark.parametrize("name", ["four-bar", "five-bar"])
def test_jax(name: str, callback: bool, jax: Any) -> None:
    """Derivatives in both modes equal the next order; batches equal loops."""
    m = kic.load(name)
    f = m.export.coefficients("tip", close=True).to_jax(callback=callback)
    c = m.at(m._model.coordinate_values(m.coordinates, m.at().state[None])[0] + 0.01)
    r = c.coefficients("tip", order=3)
    q = jax.numpy.array(m._model.coordinate_values(m.coordinates, c.state[None])[0])
    below = stepped(c)
    slope = np.moveaxis(np.stack([np.atleast_1d(x) for x in below.state.imag / STEP]), 0, -1)
    fourth = np.moveaxis(below.coefficients("tip", order=3).D.imag / STEP, 0, -1)
    for mode in (jax.jacfwd, jax.jacrev):
        same(np.asarray(jax.jit(mode(lambda q: f(q)["tip.value"]))(q)), r.G)
        same(np.asarray(jax.jit(mode(lambda q: f(q)["tip.G"]))(q)).swapaxes(1, 2), r.H)
        same(np.asarray(mode(lambda q: f(q)["state"])(q)), slope, 1.0)
    same(np.asarray(jax.hessian(lambda q: f(q)["tip.value"])(q)), r.H)
    third = jax.jit(jax.jacfwd(lambda q: f(q)["tip.H"]))
    same(np.asarray(third(q)), np.moveaxis(r.D, 1, -1))
    found = jax.jit(f)(q)
    same(np.asarray(found["tip.value"]), r.values, 1.0)
    same(np.asarray(found["tip.H"]), r.H)
    same(np.asarray(found["state"]), c.state, 1.0)
    some = q + np.linspace(-0.2, 0.2, 3)[:, None]
    whole = jax.jit(jax.vmap(lambda q: f(q)["tip.H"]))(some)
    same(np.asarray(whole), m.at(np.asarray(some)).coefficients("tip").H)
    pairs = jax.vmap(jax.jacrev(lambda q, near: f(q, near)["tip.G"]))(some, m.at(np.asarray(some)).state)
    same(np.asarray(pairs).swapaxes(2, 3), np.asarray(whole))
    if callback:
        with raises(kic.InputError, key="callback"):
            jax.jacfwd(third)(q)
    else:
        same(np.asarray(jax.jit(jax.jacfwd(third))(q)), np.moveaxis(fourth, 1, -2).swapaxes(-1, -2))


@pytest.mark.slow
def test_jax_callback_of_a_large_mechanism(jax: Any) -> None:
    """Derivatives of orientations, one call of the kernels for a batch, and errors at run time."""
    m = kic.load("gough-stewart")
    f = m.export.coefficients("platform").to_jax(callback=True)
    states = sampled(m, 3)
    q = m._model.coordinate_values(m.coordinates, states)
    found = jax.jit(jax.vmap(jax.jacrev(lambda q: f(q)["platform.G"])))(q)
    same(np.asarray(found).swapaxes(2, 3), m.prepare.coefficients("platform")(states).platform.H)
    slope = jax.jacrev(lambda q: f(q, states[0])["state"])(q[0])
    below = stepped(m.at(q[0])).state.imag / STEP
    same(np.asarray(slope), below.T, 1.0)
    single = f(q[0].astype(np.float32), states[0].astype(np.float32))["platform.G"]
    assert single.dtype == np.float32
    same(np.asarray(single), m.at(q[0]).coefficients("platform").G, rtol=1e-4)
    with pytest.raises(jax.errors.JaxRuntimeError, match="ConfigurationError"):
        f(q[0] + 1e3)["state"].block_until_ready()
    for wrong_q in (q, q[0] + 1j):
        with raises(kic.InputError, key="q"):
            f(wrong_q)
    for key, wrong in (
        ("close", {"close": "equations"}),
        ("parameters", {"parameters": "gravity.z"}),
        ("outputs", {"outputs": "platform.G"}),
        ("derivatives", {"derivatives": 1}),
        ("steps", {"steps": 3}),
        ("wrt", {"wrt": "platform"}),
    ):
        with raises(kic.InputError, key=key):
            m.export.coefficients("platform", **wrong).to_jax(callback=True)


def test_torch() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install -e '.[torch]'")
    for name in ("four-bar", "puma560", "three-rps"):
        m = kic.load(name)
        states, x = (
            torch.as_tensor(sampled(m, 3)),
            torch.full((len(m.coordinates),), 0.3, dtype=torch.float64),
        )
        f, known = (getattr(m.export.inverse_dynamics(), f"to_{to}")() for to in ("torch", "numpy"))
        for key, y in known(states.numpy(), x.numpy(), x.numpy()).items():
            same(f(states, x, x)[key].numpy(), y)
    m = kic.load("four-bar")
    f, c = (
        m.export.coefficients("tip", close=True).to_torch(),
        m.at({"A": 0.7}).coefficients("tip", order=3),
    )
    q = torch.tensor([0.7], dtype=torch.float64)
    value = torch.func.jacfwd(torch.func.jacrev(lambda q: f(q)["tip.value"]))(q)
    same(value.numpy(), c.H)
    third = torch.func.jacrev(torch.func.jacfwd(lambda q: f(q)["tip.G"]))(q)
    same(third.numpy(), c.D)
    assert f(q.float())["tip.G"].dtype == torch.float32
    batch = torch.linspace(0.4, 1.0, 5, dtype=torch.float64)[:, None]
    mapped = torch.func.vmap(lambda q: f(q)["tip.G"])(batch)
    same(f(batch)["tip.G"].numpy(), mapped.numpy())
    known = m.export.coefficients("tip", close=True).to_numpy()([0.7])["tip.G"]
    # arrays have a precision, lists adapt to that of others
    same(f(q.numpy())["tip.G"].numpy(), known)
    same(f([0.7], near=torch.as_tensor(m.at().state))["tip.G"].numpy(), known)
    for wrong in (
        torch.zeros(2),
        torch.tensor([0.7 + 0.1j]),
        np.array([0.7j]),
        torch.tensor([True]),
        "x",
        [1j],
    ):
        with raises(kic.InputError, key="q"):
            f(wrong)
    with raises(kic.InputError, batches={"q": (5,), "near": (2,)}):
        f(batch, near=torch.as_tensor(m.at().state).expand(2, -1))
    compiled = torch.compile(lambda q: f(q)["tip.value"].sum(), fullgraph=True, backend="aot_eager")
    slope = torch.func.grad(lambda q: f(q)["tip.value"].sum())(q)
    x = q.clone().requires_grad_()
    compiled(x).backward()
    same(x.grad.numpy(), slope.numpy())


def test_sympy_gives_the_equations_of_a_double_pendulum() -> None:
    sympy = pytest.importorskip("sympy")
    m = kic.load("horn-two-link")
    d = m.export.dynamics(parameters="gravity.y").to_sympy()
    s, e, g = sympy.symbols("shoulder elbow gravity.y", real=True)
    half = sympy.Rational(1, 2)
    assert sympy.simplify(d["I"][1, 0] - half * sympy.cos(e) - sympy.Rational(1, 3)) == 0
    assert sympy.simplify(d["load"][1] - g * half * sympy.cos(s + e)) == 0


def test_closed_inputs_and_names_of_functions() -> None:
    m = kic.load("five-bar")
    closed = m.export.inverse_dynamics(close=True).to_numpy()  # as it says
    assert np.isfinite(closed(q=[1.2, 1.6], qd=[1.0, 2.0], qdd=[0.0, 0.0])["effort"]).all()
    assert m.export.dynamics(name="arm.left-1").to_numpy().name == "arm_left_1"
    assert m.export.dynamics(name="dof").to_c().name == "dof"


def test_one_number_is_an_array_of_size_one() -> None:
    m = kic.load("four-bar")
    f = m.export.inverse_dynamics(close=True).to_numpy()
    same(f(q=0.5, qd=1, qdd=2.0)["effort"], f(q=[0.5], qd=[1.0], qdd=[2.0])["effort"])
    same(f(q=0.5, qd=1, qdd=2.0)["effort"], m.at(0.5).inverse_dynamics(1.0, 2.0))


@pytest.mark.slow_for("near", "main", "failed", "effort_known", "int", "sinf")
@needs_compiler
@pytest.mark.parametrize("name", ["int", "main", "sinf", "printf", "failed", "near", "effort_known"])
def test_names_that_are_words_of_c(name: str, tmp_path: Path) -> None:
    """A function and parts with names that C reserves compile; the test program passes."""
    link = kic.Body("int", mass=1.0, com=(1, 0, 0), inertia=(1, 1, 1, 0, 0, 0))
    joint = kic.Joint("void", "revolute", ("ground", "int"), at=(0, 0, 0), axis=(0, 0, 1))
    m = kic.Mechanism("main", [link], [joint])
    for question, options in (("inverse_dynamics", {}), ("coefficients", {"of": ["int", "void"]})):
        code = getattr(m.export, question)(name=name, close=True, **options).to_c()
        assert code.name in (name, f"m_{name}")
        run_own_test(code, tmp_path, "-std=c99", "-Werror")


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    code = kic.load("four-bar").export.position().to_c()
    file = tmp_path / "file"
    file.write_text("kept")
    for place in (file, file / "below"):
        with raises(kic.FileError, path=place):
            code.save(place)
    (tmp_path / f"{code.name}.c").mkdir()
    with raises(kic.FileError, path=tmp_path / f"{code.name}.c"):
        code.save(tmp_path)
