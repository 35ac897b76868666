"""FMUs of FMI 3.0: the description, and runs of their binaries, equal those of kic."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import numpy as np
import pytest
from c_text import compile_c, needs_compiler
from click.testing import CliRunner
from raising import raises

import kic
from kic.export import fmu
from kic.export.fmu_description import _structured
from kic.ui.cli.main import main

# one step of fourth order is 1 ms; motions of a second change by 1e-9 of their size with half of it
RUN_RTOL = 1e-6


def five_bar() -> kic.Mechanism:
    return kic.load("five-bar").replace(gravity=(0.0, -386.4, 0.0))


def described(f: kic.results.FMU) -> tuple[ElementTree.Element, list[dict[str, str]]]:
    root = ElementTree.fromstring(f.description)
    return root, [v.attrib for v in root.iter("Float64")]


def test_description() -> None:
    """Variables stand at their references, with units, start values and derivatives."""
    m = kic.load("five-bar")
    f = m.export.forward_dynamics(parameters=["coupler.mass", "gravity.y"]).to_fmu()
    root, variables = described(f)
    names = [v["name"] for v in variables]
    assert names == [
        "time", "q.A", "q.E", "qd.A", "qd.E", "qdd.A", "qdd.E", "effort.A", "effort.E",
        "parameters.coupler.mass", "parameters.gravity.y", "step_size", "residual", "branch", "guard",
    ]  # fmt: skip
    assert [v["valueReference"] for v in variables] == [str(k) for k in range(len(names))]
    assert [variables[int(v["derivative"])]["name"] for v in variables if "derivative" in v] == names[1:5]
    of = dict(zip(names, variables, strict=True))
    start = m._model.coordinate_values(m.coordinates, m.at().state[None])[0]
    assert [float(of[n]["start"]) for n in ("q.A", "q.E")] == start.tolist()
    assert float(of["parameters.coupler.mass"]["start"]) == m["coupler"].mass
    assert of["effort.A"]["causality"] == "input"
    assert of["parameters.gravity.y"]["variability"] == "tunable"
    units = {u.attrib["name"]: u.find("BaseUnit") for u in root.iter("Unit")}
    assert of["effort.A"]["unit"] == "lbf.in"
    torque = units["lbf.in"]
    assert torque is not None
    assert {k: float(x) for k, x in torque.attrib.items()} == pytest.approx(
        {"kg": 1, "m": 2, "s": -2, "factor": 0.45359237 * 9.80665 * 0.0254}
    )
    structure = {
        kind: [names[int(e.attrib["valueReference"])] for e in root.iter(kind)]
        for kind in ("Output", "ContinuousStateDerivative", "InitialUnknown")
    }
    assert structure["Output"] == names[1:7]
    assert structure["ContinuousStateDerivative"] == names[3:7]
    assert structure["InitialUnknown"] == names[5:7]


def test_archive_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    f = kic.load("five-bar").export.forward_dynamics().to_fmu()
    monkeypatch.setattr(fmu.shutil, "which", lambda name: None)
    monkeypatch.delenv("CC", raising=False)
    file = tmp_path / "five-bar.fmu"
    with raises(kic.MissingExtraError, extra="C compiler"):
        f.save(file)
    assert not file.exists()
    monkeypatch.setenv("CC", "false")
    with raises(kic.MissingExtraError, extra="C compiler"):
        f.save(file)
    assert f.save(file, binary=False) == file
    first = file.read_bytes()
    f.save(file, binary=False)
    assert file.read_bytes() == first
    with ZipFile(file) as archive:
        names = archive.namelist()
        build = ElementTree.fromstring(archive.read("sources/buildDescription.xml"))
        assert archive.read("modelDescription.xml").decode() == f.description
    for source in build.iter("SourceFile"):
        assert f"sources/{source.attrib['name']}" in names
    assert not [name for name in names if name.startswith("binaries")]


def test_names_of_components_and_other_units() -> None:
    """Components are entries of arrays; units of unknown size have a name alone."""
    m = kic.load("three-rps").replace(units=kic.Units(length="cubit", mass="kg", time="ms", force="N"))
    root, variables = described(m.export.forward_dynamics(parameters=["gravity.z"]).to_fmu())
    of = {v["name"]: v for v in variables}
    assert of["parameters.gravity.z"]["unit"] == "cubit/ms2"
    assert float(of["step_size"]["start"]) == 1.0
    base = {u.attrib["name"]: (u[0].attrib if len(u) else {}) for u in root.iter("Unit")}
    assert not base["cubit"]
    assert base["ms"] == {"s": "1", "factor": "0.001"}
    assert _structured("q", "U1.2") == "q.U1[2]"
    assert _structured("q", "left-arm") == "q.'left-arm'"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("it's", r"'it\'s'"), ("a\\", r"'a\\'"), ('a"b', r"""'a\"b'"""), ("a b*[1]", "'a b*[1]'"),
        ("é", "'%C3%A9'"), ("a`", "'a%60'"), ("50%", "'50%25'"),
        ("٣", "'%D9%A3'"), ("%C3%A9", "'%25C3%25A9'"),
    ],
)  # fmt: skip
def test_names_that_are_quoted(name: str, found: str) -> None:
    """Quoted names have some ASCII characters, and escapes of others (FMI 3.0, 2.4.7.5.1)."""
    assert _structured("q", name) == f"q.{found}"
    assert re.fullmatch(r"""'([\w!#$%&()*+,\-./:;<>=?@[\]^{}|~ ]|\\['"?\\])+'""", found, re.ASCII)


def test_invalid_arguments(tmp_path: Path) -> None:
    m = kic.load("five-bar")
    f = m.export.forward_dynamics().to_fmu()
    with raises(kic.InputError, key="path"):
        f.save(tmp_path / "five-bar.zip")
    with raises(kic.FileError):
        f.save(tmp_path / "no" / "five-bar.fmu", binary=False)
    runner = CliRunner()
    for arguments in ([], ["--c", "x", "--fmu", "x.fmu"], ["--c", "x", "--no-binary"]):
        assert runner.invoke(main, ["export", "four-bar", *arguments]).exit_code == 2
    result = runner.invoke(
        main, ["export", "four-bar", "--fmu", str(tmp_path / "a.fmu"), "--question", "inverse_dynamics"]
    )
    assert result.exit_code == 2
    assert "forward_dynamics" in result.output


@pytest.mark.slow_for("1")
@needs_compiler
@pytest.mark.parametrize("derivatives", [0, 1])
def test_the_sources_compile_without_warnings(derivatives: int, tmp_path: Path) -> None:
    f = kic.load("four-bar").export.forward_dynamics(derivatives=derivatives).to_fmu()
    for name, text in f.sources.items():
        (tmp_path / name).write_text(text)
    strict = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]
    for name in (name for name in f.sources if name.endswith(".c")):
        compile_c(*strict, "-c", tmp_path / name, "-o", tmp_path / "x.o")


class Library:
    """Co-simulation of a saved FMU through the functions of its binary."""

    def __init__(self, file: Path, folder: Path) -> None:
        with ZipFile(file) as archive:
            (name,) = [n for n in archive.namelist() if n.startswith("binaries")]
            self.dll = ctypes.CDLL(archive.extract(name, folder))
            root = ElementTree.fromstring(archive.read("modelDescription.xml"))
        self.of = {v.attrib["name"]: int(v.attrib["valueReference"]) for v in root.iter("Float64")}
        self.messages: list[str] = []
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
        self.log = kind(lambda e, status, category, message: self.messages.append(message.decode()))
        make = self.dll.fmi3InstantiateCoSimulation
        make.restype = ctypes.c_void_p
        token = root.attrib["instantiationToken"].encode()
        assert make(b"", b"wrong", None, 0, 0, 0, 0, None, ctypes.c_size_t(0), None, self.log, None) is None
        self.own = ctypes.c_void_p(
            make(b"", token, None, 0, 0, 0, 0, None, ctypes.c_size_t(0), None, self.log, None)
        )

    def _float64(self, kind: str, names: tuple[str, ...], values: list[float]) -> tuple[int, list[float]]:
        n = len(names)
        references = (ctypes.c_uint32 * n)(*[self.of[name] for name in names])
        array, size = (ctypes.c_double * n)(*values), ctypes.c_size_t(n)
        return getattr(self.dll, f"fmi3{kind}Float64")(self.own, references, size, array, size), list(array)

    def set(self, **values: float) -> int:
        return self._float64("Set", tuple(k.replace("_", ".", 1) for k in values), list(values.values()))[0]

    def get(self, *names: str) -> np.ndarray:
        status, values = self._float64("Get", names, [0.0] * len(names))
        assert status <= 1
        return np.array(values)

    def start(self) -> int:
        none = ctypes.c_double(0.0)
        assert self.dll.fmi3EnterInitializationMode(self.own, False, none, none, False, none) == 0
        return int(self.dll.fmi3ExitInitializationMode(self.own))

    def step(self, time: float, h: float) -> int:
        flags, last = [ctypes.c_bool() for _ in range(3)], ctypes.c_double()
        return int(
            self.dll.fmi3DoStep(
                self.own, ctypes.c_double(time), ctypes.c_double(h), True,
                *map(ctypes.byref, flags), ctypes.byref(last),
            )
        )  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("order", ["AE", "EA"])
def test_co_simulation_equals_simulate(order: str, tmp_path: Path) -> None:
    """Runs from other start values, with efforts that change, follow those of `simulate`."""
    m = five_bar()
    for name in "ABCDE" * (order == "EA"):
        m = m.replace(name, damping=0.02)
    m = m.replace(coordinates=[*order])
    f = m.export.forward_dynamics(parameters=["coupler.mass"]).to_fmu()
    own = Library(f.save(tmp_path / "five-bar.fmu"), tmp_path)
    mass = 1.3 * m["coupler"].mass
    assert own.set(q_A=1.4, q_E=1.2, qd_A=0.5) == 0
    assert own._float64("Set", ("parameters.coupler.mass",), [mass])[0] == 0
    assert own.start() == 0
    heavy = m.replace("coupler", mass=mass)
    near, qd = heavy.at({"A": 1.4, "E": 1.2}), [0.5 * (name == "A") for name in order]
    for k, effort in enumerate((0.3, 1.3, -0.5)):
        assert own.set(effort_A=effort) == 0
        assert own.step(0.03 * k, 0.03) == 0
        run = heavy.simulate([0.0, 0.03], effort={"A": effort}, near=near, qd=qd)
        near, qd = run.configuration[-1], run.qd[-1]
        found = own.get(*(f"{kind}.{name}" for kind in ("q", "qd") for name in order), "time")
        known = np.array([*run.q[-1], *run.qd[-1], 0.03 * (k + 1)])
        assert np.abs(found - known).max() <= RUN_RTOL * np.abs(known).max()
        assert own.get("residual")[0] < 1e-11
    assert own.get("guard")[0] > 1
    assert own.set(q_A=0.0) == 3  # states cannot be set after the initialization
    assert own.set(effort_A=float("nan")) == 3
    assert own.dll.fmi3Reset(own.own) == 0
    assert own.set(q_A=3.1, q_E=0.0) == 0  # out of reach: an error and a message
    assert own.start() == 3
    assert "do not close" in own.messages[-1]


def parallel_robot() -> kic.Mechanism:
    masses = {"left": 0.4, "right": 0.4, "left_rod": 0.3, "right_rod": 0.3}
    g = (0.0, -9.81, 0.0)
    return kic.linkages.five_bar(
        ground=0.2, proximal=0.2, distal=0.35, masses=masses, angles=(2.0, 1.1), gravity=g
    )


@needs_compiler
def test_starts_stay_in_the_assembly_mode(tmp_path: Path) -> None:
    """Starts are those of `at`, or are refused; here ways pass near others, which long steps would meet."""
    m, rng, started = parallel_robot(), np.random.default_rng(0), 0
    own = Library(m.export.forward_dynamics().to_fmu().save(tmp_path / "a.fmu"), tmp_path)
    for q in [[0.7894580327628637, 2.3662866932558897], *rng.uniform([0.6, 1.9], [1.1, 2.5], (200, 2))]:
        assert own.dll.fmi3Reset(own.own) == 0
        own._float64("Set", ("q.A", "q.E"), list(q))
        if own.start() > 1:
            assert "on the way from the exported configuration" in own.messages[-1]
            continue
        started += 1
        known = m.at(dict(zip("AE", q, strict=True))).forward_dynamics([0.0, 0.0], [0.0, 0.0])
        found = own.get("qdd.A", "qdd.E")
        assert np.abs(found - known).max() <= RUN_RTOL * np.abs(known).max()
        assert np.isfinite(own.get("branch"))
    assert started > 100
    assert own.dll.fmi3Reset(own.own) == 0
    own._float64("Set", ("q.A", "q.E"), [1e5, 1.1])
    assert own.start() == 3
    assert "too far" in own.messages[-1]
    assert own.start() == 3  # once more, without a search
    assert own.dll.fmi3Reset(own.own) == 0
    assert own.set(q_A=2.0 + 200 * np.pi) == 0  # more turns than pieces
    assert own.start() == 3
    assert "on the way" in own.messages[-1]


@needs_compiler
def test_starts_with_other_lengths(tmp_path: Path) -> None:
    """Starts for other lengths are those of `at` too; nothing proves it, which is a warning."""
    m = parallel_robot()
    name = "E.at.x"
    f = m.export.forward_dynamics(parameters=[name]).to_fmu()
    own = Library(f.save(tmp_path / "a.fmu"), tmp_path)
    own._float64("Set", ("q.A", "q.E", f"parameters.{name}"), [1.4, 1.5, 0.23])
    assert own.start() == 1
    assert "not proved" in own.messages[-1]
    assert np.isnan(own.get("branch"))
    wider = m.replace("E", at=(0.23, 0.0, 0.0))
    known = wider.at({"A": 1.4, "E": 1.5}).forward_dynamics([0.0, 0.0], [0.0, 0.0])
    assert np.abs(own.get("qdd.A", "qdd.E") - known).max() <= RUN_RTOL * np.abs(known).max()


@needs_compiler
def test_the_example_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fmpy = pytest.importorskip("fmpy", reason="needs FMPy: pip install -e '.[fmu]'")
    guide = Path(__file__).parents[2] / "notebooks" / "guides" / "export.md"
    if not guide.is_file():
        pytest.skip("the guide is not part of an installed package")
    text = guide.read_text(encoding="utf-8")
    (export,) = re.findall(r"^fmu = .*to_fmu\(.*$", text, re.MULTILINE)
    (run,) = re.findall(r"^import fmpy\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names = {"m": kic.load("five-bar"), "fmpy": fmpy}
    monkeypatch.chdir(tmp_path)
    exec(f"{export}\n{run}", names)
    end = names["result"][-1]
    known = five_bar().simulate(float(end["time"]), effort=[2.0, 0.0])
    found = [end[f"{key}.{name}"] for key in ("q", "qd") for name in "AE"]
    expected = np.concatenate([known.q[-1], known.qd[-1]])
    assert np.abs(found - expected).max() <= RUN_RTOL * np.abs(expected).max()


@needs_compiler
def test_importer(tmp_path: Path) -> None:
    """FMPy finds no problem, and both kinds of simulation equal `simulate`; a state can be restored."""
    fmpy = pytest.importorskip("fmpy", reason="needs FMPy: pip install -e '.[fmu]'")
    from fmpy.validation import validate_fmu

    for name, t in (("five-bar", 0.1), ("three-rps", 0.1), ("scara", 0.1)):
        m = five_bar() if name == "five-bar" else kic.load(name)
        file = str(m.export.forward_dynamics().to_fmu().save(tmp_path / "a.fmu"))
        assert validate_fmu(file) == []
        known = m.simulate(t)
        for kind in ("ModelExchange", "CoSimulation"):
            r = fmpy.simulate_fmu(
                file, fmi_type=kind, stop_time=t, output_interval=t / 10, relative_tolerance=1e-9
            )
            found = np.array(list(r[-1]))[1 : 1 + 2 * len(m.coordinates)]
            expected = np.concatenate([known.q[-1], known.qd[-1]])
            assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert CliRunner().invoke(main, ["export", "four-bar", "--fmu", str(tmp_path / "b.fmu")]).exit_code == 0
    assert validate_fmu(str(tmp_path / "b.fmu")) == []


@needs_compiler
def test_derivatives(tmp_path: Path) -> None:
    """Directional and adjoint derivatives are those of forward dynamics, also for other parameters."""
    fmpy = pytest.importorskip("fmpy", reason="needs FMPy: pip install -e '.[fmu]'")
    from fmpy import validation
    from fmpy.fmi3 import FMU3Model

    m = five_bar()
    options = {"parameters": ["coupler.mass"], "derivatives": 1}
    f = m.export.forward_dynamics(**options).to_fmu()
    file = str(f.save(tmp_path / "five-bar.fmu"))
    assert validation.validate_fmu(file) == []
    for kind in ("ModelExchange", "CoSimulation"):
        own = described(f)[0].find(kind)
        assert own is not None
        assert own.attrib["providesDirectionalDerivatives"] == "true"
        assert own.attrib["providesAdjointDerivatives"] == "true"
    about = fmpy.read_model_description(file)
    of = {v.name: v.valueReference for v in about.modelVariables}
    own = FMU3Model(
        guid=about.guid,
        unzipDirectory=fmpy.extract(file, tmp_path / "own"),
        modelIdentifier=about.modelExchange.modelIdentifier,
        instanceName="own",
    )
    own.instantiate()
    q, qd, effort, mass = [1.4, 1.2], [0.5, -1.0], [0.3, 2.0], 1.3 * m["coupler"].mass
    own.setFloat64(
        [
            of[name]
            for name in ("q.A", "q.E", "qd.A", "qd.E", "effort.A", "effort.E", "parameters.coupler.mass")
        ],
        [*q, *qd, *effort, mass],
    )
    own.enterInitializationMode()
    own.exitInitializationMode()
    rows = [of[f"{key}.{name}"] for key in ("qd", "qdd") for name in "AE"]
    columns = [of[f"{key}.{name}"] for key in ("q", "qd", "effort") for name in "AE"]
    J = [own.getDirectionalDerivative(rows, [column], [1.0]) for column in columns]
    heavy = m.replace("coupler", mass=mass)
    f = heavy.export.forward_dynamics(close=True, derivatives=1).to_numpy()(q, qd, effort)
    known = np.vstack([np.eye(6)[2:4], np.hstack([f[f"qdd.d_{name}"] for name in ("q", "qd", "effort")])])
    assert np.abs(np.transpose(J) - known).max() <= 1e-9 * np.abs(known).max()
    seed = [1.0, -2.0, 0.5, 3.0]
    adjoint = own.getAdjointDerivative(rows, columns, seed, len(columns))
    assert np.abs(adjoint - seed @ known).max() <= 1e-9 * np.abs(known).max()
    for name in ("parameters.coupler.mass", "qdd.A", "qdd.E"):
        with pytest.raises(fmpy.fmi1.FMICallException):
            own.getDirectionalDerivative(rows, [of[name]], [1.0])
    with pytest.raises(fmpy.fmi1.FMICallException):
        own.getDirectionalDerivative([of["guard"]], columns[:1], [1.0])
    own.freeInstance()
    with raises(kic.InputError, key="derivatives"):
        m.export.forward_dynamics(derivatives=2).to_fmu()
