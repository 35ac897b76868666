"""Motor maps in files for other packages: loops replaced by polynomials, and read back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from raising import raises

import kic
from kic.ui.cli.main import main

BAR = kic.load("four-bar")
ROWS = ["B", "D"]


def ankle(**laws: float) -> kic.Mechanism:
    """Return a universal joint that two cranks drive by rods of fixed length."""
    sides = {"left": 0.05, "right": -0.05}
    inertia, y, x = (1e-5, 1e-5, 1e-5), (0, 1, 0), (1, 0, 0)
    return kic.Mechanism(
        "ankle",
        [
            kic.Body("foot", mass=1.0, com=(0.05, 0, -0.04), inertia=(2e-3, 4e-3, 4e-3)),
            *(kic.Body(f"{s} crank", mass=0.05, com=(0, w, 0.2), inertia=inertia) for s, w in sides.items()),
        ],
        [
            kic.Joint("pitch", "universal", ("ground", "foot"), at=(0, 0, 0), axis=y, axis2=x),
            *(
                kic.Joint(f"{s} motor", "revolute", ("ground", f"{s} crank"), at=(0, w, 0.2), axis=y, **laws)
                for s, w in sides.items()
            ),
        ],
        points=[
            *(kic.Point(f"{s} pin", f"{s} crank", at=(-0.06, w, 0.2)) for s, w in sides.items()),
            *(kic.Point(f"{s} foot pin", "foot", at=(-0.06, w, 0)) for s, w in sides.items()),
        ],
        distances=[kic.Distance(f"{s} rod", (f"{s} pin", f"{s} foot pin"), fixed=True) for s in sides],
        coordinates=["left motor", "right motor"],
    )  # fmt: skip


def followed(text: str, p: kic.results.PolynomialMap, m: kic.Mechanism) -> np.ndarray:
    """Return the largest errors of rows from closed loops, where MuJoCo's constraints hold."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    data, places = (
        mujoco.MjData(model),
        {model.joint(k).name: model.jnt_qposadr[k] for k in range(model.njnt)},
    )
    assert not any(model.eq_type == int(mujoco.mjtEq.mjEQ_CONNECT))
    assert not any(model.eq_type == int(mujoco.mjtEq.mjEQ_WELD))
    worst = np.zeros(len(p.rows))
    for q in np.random.default_rng(1).uniform(*p.limits.T, (40, len(p.variables))):
        for name, x in zip(p.variables, q, strict=True):
            data.qpos[places[name]] = x
        start = np.array([data.qpos[places[row]] for row in p.rows])
        mujoco.mj_forward(model, data)
        assert data.ne == len(p.rows)
        # each constraint is a joint's value less its polynomial; Newton's step is exact
        wanted = start - data.efc_pos[: data.ne]
        for row, x in zip(p.rows, wanted, strict=True):
            data.qpos[places[row]] = x
        mujoco.mj_forward(model, data)
        assert np.abs(data.efc_pos[: data.ne]).max() < 1e-14
        known = m.at(dict(zip(p.variables, q, strict=True))).coefficients(p.rows, order=1).values
        worst = np.maximum(worst, np.abs(wanted - known))
    return worst


def test_mujoco_follows_polynomials_within_their_bounds() -> None:
    """The loop is gone, and joints along the range are within the bound of those of the closed loop."""
    p = BAR.export.actuation_map(ROWS).to_polynomial(limits={"A": (0.4, 1.4)}, degree=4)
    text = kic.to_mjcf(BAR, polynomials=p)
    worst = followed(text, p, BAR)
    assert (worst <= p.error_bound + 1e-14).all()
    assert (worst > p.error_bound / 3).all()  # the bounds are those of this polynomial
    assert "'B' for 'A' from 0.4 to 1.4 rad: within 1.17e-05 rad of the closed loop" in text
    assert float(p.error_bound[0]) < 1.17e-5
    # a reader without polynomials leaves the joints free, and a simulation from the text moves
    assert len(kic.from_mjcf(text, strict=False).coordinates) == 3


def test_simulated_motions_agree() -> None:
    """The file and the closed loop fall alike, within the error of Euler's method."""
    mujoco = pytest.importorskip("mujoco")
    p = BAR.export.actuation_map(ROWS).to_polynomial(limits={"A": (0.1, 1.5)}, degree=4)
    ends = []
    for maps in (p, ()):
        model = mujoco.MjModel.from_xml_string(kic.to_mjcf(BAR, polynomials=maps, timestep=2e-4))
        data = mujoco.MjData(model)
        for _ in range(400):
            mujoco.mj_step(model, data)
        ends.append(data.joint("A").qpos[0])
    end = BAR.simulate([0, 0.08]).q[-1, 0]
    assert abs(end - 0.927295218001612) > 0.02  # it has moved
    assert abs(ends[0] - end) < 5e-3
    assert abs(ends[1] - end) < 5e-3


def test_files_of_linear_polynomials_are_read_back(tmp_path) -> None:
    """<mimic> and equalities of degree 1 become couplings, with the same values."""
    p = BAR.export.actuation_map(ROWS).to_polynomial(limits={"A": (0.8, 1.1)}, degree=1)
    BAR.save(tmp_path / "bar.urdf", polynomials=p)
    BAR.save(tmp_path / "bar.xml", polynomials=p)
    pytest.importorskip("mujoco")
    near = kic.to_urdf(BAR, polynomials=p).near
    for m in (kic.from_urdf(tmp_path / "bar.urdf", near=near), kic.from_mjcf(tmp_path / "bar.xml")):
        assert m.mobility().dof == 1
        for a in (0.8, 0.95, 1.1):
            np.testing.assert_allclose(m.at({"A": a}).value(ROWS), p(a), atol=1e-9)
    text = (tmp_path / "bar.urdf").read_text()
    assert text.count("<mimic") == 2
    assert text.count("of the closed loop") == 2


@pytest.mark.slow_for("0.1")
@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_two_motors_are_fixed_tendons(damping: float) -> None:
    """Linear maps of two motors replace fixed distances, also of joints with laws."""
    m = ankle(damping=damping)
    limits = {"left motor": (-0.3, 0.2), "right motor": (-0.25, 0.3)}
    p = m.export.actuation_map("pitch").to_polynomial(limits=limits, degree=1)
    text = kic.to_mjcf(m, polynomials=p)
    worst = followed(text, p, m)
    assert (worst <= p.error_bound + 1e-14).all()
    assert (worst > p.error_bound / 4).all()
    again = kic.from_mjcf(text)
    assert again.mobility().dof == 2
    q = np.array([0.1, -0.2])
    values = again.at(dict(zip(p.variables, q, strict=True))).value(["pitch_1", "pitch_2"])
    np.testing.assert_allclose(values, p(q), atol=1e-9)


def test_several_mechanisms_of_one_motor() -> None:
    """Maps of one motor each, from mechanisms whose other motors are locked, serve together."""
    m = kic.Mechanism(
        "pair",
        [replace(b, name=f"{b.name}{k}") for k in "12" for b in BAR.bodies],
        [
            replace(j, name=f"{j.name}{k}", bodies=tuple(b if b == "ground" else f"{b}{k}" for b in j.bodies))
            for k in "12"
            for j in BAR.joints
        ],
        coordinates=["A1", "A2"],
    )
    maps = []
    for k, other in (("1", "A2"), ("2", "A1")):
        alone = m.lock({other: float(m.at().value(other))})
        limits = {f"A{k}": (0.4, 1.4)}
        rows = [f"B{k}", f"D{k}"]
        maps.append(alone.export.actuation_map(rows, wrt=f"A{k}").to_polynomial(limits=limits, degree=4))
    text = kic.to_mjcf(m, polynomials=maps)
    assert text.count("<connect") == 0
    assert text.count("polycoef") == 4
    # the other loop stays
    assert kic.to_mjcf(m, polynomials=maps[0]).count("<connect") == 2


def test_joints_of_a_whole_loop() -> None:
    """Of a loop whose joints all have polynomials, one is cut and needs none."""
    p = BAR.export.actuation_map(["B", "C", "D"]).to_polynomial(limits={"A": (0.4, 1.4)}, degree=2)
    assert kic.to_mjcf(BAR, polynomials=p).count("<connect") == 0
    assert kic.to_mjcf(BAR, polynomials=p).count("polycoef") == 2


def test_motors_among_the_rows_need_no_constraint() -> None:
    p = BAR.export.actuation_map(["A", *ROWS]).to_polynomial(limits={"A": (0.8, 1.1)}, degree=1)
    assert kic.to_urdf(BAR, polynomials=p).text.count("<mimic") == 2
    assert kic.to_mjcf(BAR, polynomials=p).count("polycoef") == 2


def test_laws_of_the_cut_joint_stay() -> None:
    """A cut joint with a damper stays in the file, and follows its polynomial, too."""
    damped = BAR.replace("C", damping=0.2)
    with raises(kic.ModelError, names=("C",)):
        kic.to_mjcf(damped, polynomials=exported())
    damped = damped.replace("B", damping=0.1).replace("D", damping=0.1)
    p = damped.export.actuation_map(["B", "C", "D"]).to_polynomial(limits={"A": (0.4, 1.4)}, degree=4)
    text = kic.to_mjcf(damped, polynomials=p)
    assert text.count("polycoef") == 3
    assert (followed(text, p, damped) <= p.error_bound + 1e-14).all()


def exported(**options: Any) -> kic.results.PolynomialMap:
    given: dict[str, Any] = {"of": ROWS, "wrt": None, "limits": {"A": (0.4, 1.4)}, "degree": 4, **options}
    asked = BAR.export.actuation_map(given.pop("of"), wrt=given.pop("wrt"))
    return asked.to_polynomial(**given)


@pytest.mark.slow
def test_maps_that_no_file_can_express(tmp_path) -> None:
    with raises(kic.ModelError, key="polynomials", name="B"):
        kic.to_mjcf(BAR, polynomials=exported(degree=5))
    with raises(kic.ModelError, key="polynomials", name="B") as caught:
        kic.to_urdf(BAR, polynomials=exported(degree=2))
    assert "`degree=1`" in str(caught.value)
    with raises(kic.ModelError, key="polynomials", names=("B",)):
        kic.to_mjcf(BAR, polynomials=exported(of="D"))
    with raises(kic.ModelError, key="polynomials", name="tip.x"):
        kic.to_mjcf(BAR, polynomials=exported(of=["tip.x", *ROWS]))
    with raises(kic.ModelError, key="polynomials", name="B"):
        kic.to_mjcf(BAR, polynomials=[exported(), exported(degree=3)])
    with raises(kic.InputError, key="polynomials"):
        BAR.save(tmp_path / "bar.toml", polynomials=exported())
    # one that is a motor elsewhere, and limits without the reference configuration
    with raises(kic.ModelError, key="polynomials", name="B"):
        kic.to_mjcf(
            BAR, polynomials=[exported(of="D"), exported(of="B"), exported(of="C", wrt="B", limits=0.3)]
        )
    with raises(kic.ModelError, key="polynomials", name="B"):
        kic.to_mjcf(BAR, polynomials=exported(limits={"A": (1.0, 1.4)}))
    # polynomials of another reading of the joint
    turned = replace(
        BAR, joints=[replace(j, value=j.value[0] + 1) if j.name == "D" else j for j in BAR.joints]
    )
    with raises(kic.ModelError, key="polynomials", name="D"):
        kic.to_mjcf(turned, polynomials=exported())
    m = ankle()
    p = m.export.actuation_map("pitch").to_polynomial(limits=0.2, degree=2)
    with raises(kic.ModelError, key="polynomials", name="pitch.1"):
        kic.to_mjcf(m, polynomials=p)
    with raises(kic.ModelError, key="polynomials") as caught:
        kic.to_urdf(m, polynomials=p)
    assert "to_mjcf" in str(caught.value)
    with raises(kic.ModelError, name="left rod"):
        kic.to_mjcf(m)


def test_sliders_follow_a_crank() -> None:
    """A prismatic joint of the loop has a polynomial in its unit."""
    m = kic.load("slider-crank")
    rows = [j.name for j in m.joints if j.name != "shaft"]
    p = m.export.actuation_map(rows).to_polynomial(limits={"shaft": (0.6, 1.2)}, degree=4)
    text = kic.to_mjcf(m, polynomials=p, strict=False)
    kept = [k for k, row in enumerate(rows) if f'joint1="{row}"' in text]
    assert "piston" in [rows[k] for k in kept]
    # the joint that is cut has no constraint
    own = replace(p, rows=tuple(rows[k] for k in kept), coefficients=p.coefficients[kept])
    assert (followed(text, own, m) <= p.error_bound[kept] + 1e-14).all()


def test_the_command_writes_maps(tmp_path) -> None:
    """Tables, polynomials and robot files by one command; wrong options are explained."""
    from click.testing import CliRunner

    def run(*arguments: str) -> tuple[int, str]:
        made = CliRunner().invoke(main, ["export", "four-bar", "--of", "B,D", *arguments])
        return made.exit_code, made.output

    box = ("--box", "A=40deg:60deg")
    for name, option, more in (
        ("map.csv", "--table", ("--points", "4")),
        ("map.npz", "--table", ()),
        ("map.json", "--polynomial", ("--error-max", "1e-5")),
        ("bar.urdf", "--polynomial", ("--degree", "1")),
    ):
        code, output = run(option, str(tmp_path / name), *box, *more)
        assert code == 0, output
        assert (tmp_path / name).stat().st_size > 100
    assert len((tmp_path / "map.csv").read_text().splitlines()) == 5
    limits = {"A": tuple(np.deg2rad([40, 60]))}
    known = BAR.export.actuation_map(ROWS).to_polynomial(limits=limits, error_max=1e-5)
    saved = json.loads((tmp_path / "map.json").read_text())
    np.testing.assert_allclose(saved["coefficients"], known.coefficients, atol=1e-12)
    degree = ("--degree", "2")
    for message, arguments in (
        ("Give one of --c DIR", (*box, *degree)),
        ("--polynomial requires --box", ("--polynomial", "map.json", *degree)),
        ("must be NAME=LOWER:UPPER", ("--polynomial", "map.json", *degree, "--box", "A=40deg")),
        ("'60m' must be in rad", ("--polynomial", "map.json", *degree, "--box", "A=40deg:60m")),
        ("No coordinate 'F'", ("--polynomial", "map.json", *degree, "--box", "F=1:2")),
        ("'A' is given twice", ("--polynomial", "map.json", *degree, *box, *box)),
        ("Limits of --box", ("--polynomial", "map.json", *degree, "--box", "A=60deg:40deg")),
        ("--error-max", ("--polynomial", "map.json", *box)),
        ("--error-max must be a positive", ("--polynomial", "map.json", *box, "--error-max", "0")),
        ("FILE must end with .json or .xml or .urdf", ("--polynomial", "map.toml", *degree, *box)),
        ("FILE must end with .csv or .npz", ("--table", "map.json", *box)),
        ("`degree=1`", ("--polynomial", str(tmp_path / "bar.urdf"), *degree, *box)),
        ("--degree must be left out", ("--table", "map.csv", *box, *degree)),
        ("--output must be left out", ("--table", "map.csv", *box, "--output", "J")),
        ("Give one of --c DIR", ("--table", "map.csv", "--polynomial", "map.json", *box)),
    ):
        code, output = run(*arguments)
        assert code != 0
        assert message in output
        assert "Traceback" not in output
