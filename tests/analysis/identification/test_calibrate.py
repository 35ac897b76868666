"""Calibration against known machines: counts, exact data, repetitions, and the mechanisms it returns."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from raising import raises

import kic
from kic.description.description import held_coordinates
from kic.mechanism.dimensions import dimensions_of, with_dimensions

# positions are solved to 1e-13 of the size; the worst condition below is 1e4, times 20 and a margin
EXACT_ATOL = 1e-7
LINKS = ("ground.length", "crank.length", "coupler.length", "rocker.length")
STRUTS = tuple(f"L{i}" for i in range(6))
REFLECTORS = {"T1": (0.3, 0, 1.0), "T2": (-0.2, 0.25, 0.95), "T3": (-0.2, -0.25, 1.05)}
MARKS = tuple(f"{name}.{x}" for name in REFLECTORS for x in "xyz")
ANCHORS = tuple(f"{side}{i}.at.{x}" for side in "BP" for i in range(6) for x in "xyz")


def hexapod() -> kic.Mechanism:
    """A 6-UPS with three reflectors on the plate."""
    a, b = np.deg2rad([-10, 10, 110, 130, 230, 250]), np.deg2rad([-50, 50, 70, 170, 190, 290])
    below = np.c_[0.8 * np.cos(a), 0.8 * np.sin(a), 0 * a]
    plate = np.c_[0.5 * np.cos(b), 0.5 * np.sin(b), 0.9 + 0 * b]
    return kic.Mechanism(
        "hexapod",
        [kic.Body("plate")],
        [kic.Joint("free", "free", ("ground", "plate"), at=(0, 0, 0.9))],
        points=[
            *(kic.Point(f"B{i}", "ground", at) for i, at in enumerate(below)),
            *(kic.Point(f"P{i}", "plate", at) for i, at in enumerate(plate)),
            *(kic.Point(name, "plate", at) for name, at in REFLECTORS.items()),
        ],
        distances=[kic.Distance(name, (f"B{i}", f"P{i}")) for i, name in enumerate(STRUTS)],
        coordinates=STRUTS,
    )


def described(m: kic.Mechanism, names: Iterable[str]) -> dict[str, float]:
    """Values of dimensions in the reference configuration."""
    held = held_coordinates(m.vary([*names]))
    return {name: held[name] for name in names}


def machine(
    m: kic.Mechanism, names: Iterable[str], rng: np.random.Generator, size: float = 1e-3
) -> dict[str, float]:
    """Dimensions of a machine that differs from its drawing."""
    return {name: x + size * rng.normal() for name, x in described(m, names).items()}


def poses(
    m: kic.Mechanism,
    truth: Mapping[str, float],
    inputs: Mapping[str, np.ndarray],
    rows: Iterable[str],
    offsets: Mapping[str, float] | None = None,
) -> dict[str, np.ndarray]:
    """Exact columns of a machine with these dimensions at readings of coordinates."""
    over = dict(offsets or {})
    v, rows = m.vary([*truth]), list(rows)
    c = v.at({n: x - over.get(n, 0.0) for n, x in inputs.items()} | dict(truth))
    values = c.value(rows).reshape(-1, len(rows))
    return dict(inputs) | {n: values[:, k] + over.get(n, 0.0) for k, n in enumerate(rows)}


def combined(found: Any, truth: Mapping[str, float], offsets: Mapping[str, float] | None = None) -> Any:
    """Combinations of true values."""
    over = {f"{name}.offset": x for name, x in (offsets or {}).items()}
    return found.base.matrix @ [(dict(truth) | over)[name] for name in found.parameters]


def stewart(rng: np.random.Generator) -> tuple[kic.Mechanism, dict[str, float], dict[str, float], Any]:
    """A hexapod with errors of 3 mm, offsets of 2 mm, and its 40 exact poses."""
    m = hexapod()
    truth, offsets = machine(m, ANCHORS, rng, 3e-3), dict(zip(STRUTS, 2e-3 * rng.normal(size=6), strict=True))
    lengths = m.at().value([*STRUTS]) + rng.uniform(-0.12, 0.12, (40, 6))
    inputs = dict(zip(STRUTS, lengths.T, strict=True))
    return m, truth, offsets, poses(m, truth, inputs, MARKS, offsets)


def noisy(data: Mapping[str, Any], sizes: Mapping[str, float], rng: np.random.Generator) -> dict[str, Any]:
    """Columns with noise."""
    return {n: x + sizes.get(n, 0.0) * rng.normal(size=len(x)) for n, x in data.items()}


def test_exact_poses_of_a_hexapod_give_its_anchors_and_offsets() -> None:
    m, truth, offsets, data = stewart(np.random.default_rng(5))
    found = m.calibrate(data, ANCHORS, offsets=STRUTS)
    assert len(found.base) == 42
    assert found.base.expressions[0] == "B0.at.x"
    assert_allclose([*found.dimensions.values()], [*truth.values()], 0, EXACT_ATOL)
    assert_allclose([*found.offsets.values()], [*offsets.values()], 0, EXACT_ATOL)
    assert found.noise.max() < 1e-12
    assert found.mechanism.coordinates == STRUTS
    readings = {n: data[n] - offsets[n] for n in STRUTS}
    assert_allclose(
        found.mechanism.at(readings).value([*REFLECTORS]),
        np.stack([data[n] for n in MARKS], 1),
        0,
        EXACT_ATOL,
    )


def test_noise_of_a_hexapod_is_found_and_explains_the_errors() -> None:
    """Errors are those of the covariance: their squares have the distribution χ² with 42 degrees."""
    rng = np.random.default_rng(6)
    m, truth, offsets, data = stewart(rng)
    found = m.calibrate(noisy(data, dict.fromkeys(MARKS, 2e-5), rng), ANCHORS, offsets=STRUTS)
    # 318 degrees of freedom: one standard deviation is 4 %
    assert_allclose(found.noise, 2e-5, 0.16)
    error = found.values - combined(found, truth, offsets)
    assert 12 < error @ np.linalg.solve(found.covariance, error) < 90  # 1e-6 on either side
    before, after = found.root_mean_squares()
    assert before.max() > 1e-3
    assert_allclose(after, 2e-5, 0.5)


@pytest.mark.parametrize("name", ["puma560", "rrprrr", "panda"])
def test_number_of_combinations_of_an_arm(name: str) -> None:
    """4 R + 2 P + 6 numbers of an arm with a tool (Mooring, Roth and Driels), and 3 of three reflectors."""
    m, rng = kic.load(name), np.random.default_rng(2)
    tip = m.bodies[-1]
    places = np.add(m.joints[-1].at, [[0.1, 0, 0.05], [0, 0.1, 0.07], [-0.1, 0, 0.1]])
    m = m.add(*(kic.Point(f"T{k}", tip.name, at) for k, at in enumerate(places)))
    dims = [f"{j.name}.at.{j.bodies[0]}.{x}" for j in m.joints for x in "xyz"]
    dims += [f"{j.name}.axis.{j.bodies[0]}.r{x}" for j in m.joints for x in "xyz"]
    dims += [f"{j.name}.value" for j in m.joints] + [f"T{k}.at.{x}" for k in range(3) for x in "xyz"]
    rows = [f"T{k}.{x}" for k in range(3) for x in "xyz"]
    truth = machine(m, dims, rng)
    inputs = {n: m.at().value(n) + rng.uniform(-0.5, 0.5, 40) for n in m.coordinates}
    data = poses(m, truth, inputs, rows)
    found = m.calibrate(data, dims)
    turning = sum(j.type == "revolute" for j in m.joints)
    assert len(found.base) == 4 * turning + 2 * (len(m.joints) - turning) + 6 + 3
    # other machines with the same positions
    known = np.stack([data[n] for n in rows], axis=1)
    assert_allclose(found.mechanism.at(inputs).value(rows), known, 0, EXACT_ATOL)
    assert_allclose(found.residual, 0, atol=EXACT_ATOL)
    assert found.mechanism["T0"].body == tip.name
    assert len(found.mechanism.bodies) == len(m.bodies)


def test_poses_of_a_tool_by_its_euler_angles() -> None:
    """One pose of the tool has six numbers; the axes of the wrist turn by known angles."""
    m, rng = kic.load("puma560"), np.random.default_rng(4)
    m = m.add(kic.Frame("hand", "link6", origin=np.add(m["flange"].at, [0.0, 0.0, 0.1])))
    dims = ["elbow.at.link2.x", "wrist_bend.axis.link4.rx", "hand.axes.rz", "shoulder.value"]
    rows = [f"hand.{x}" for x in "xyz"] + [f"hand.euler_xyz.{k}" for k in (1, 2, 3)]
    truth = machine(m, dims, rng)
    inputs = {n: rng.uniform(-1.0, 1.0, 30) for n in m.coordinates}
    data = poses(m, truth, inputs, rows)
    # other branches of angles
    data["hand.euler_xyz.1"] = data["hand.euler_xyz.1"] % (2 * np.pi)
    found = m.calibrate(data, dims)
    assert len(found.base) == 4
    assert_allclose([*found.dimensions.values()], [*truth.values()], 0, EXACT_ATOL)
    assert found.noise[0] != found.noise[3]


def test_angles_of_a_four_bar_do_not_give_its_size() -> None:
    """Encoders at both cranks determine ratios of lengths, and their own offsets."""
    m, rng = kic.load("four-bar"), np.random.default_rng(1)
    truth, offsets = machine(m, LINKS, rng), {"A": 0.01, "D": -0.02}
    data = poses(m, truth, {"A": np.linspace(0.0, 6.2, 60)}, ["D"], offsets)
    found = m.calibrate(data, LINKS, offsets=["A", "D"])
    assert len(found.base) == 5
    assert found.base.expressions[1].startswith("crank.length − 0.2857 rocker.length")
    scale = truth["rocker.length"] / found.dimensions["rocker.length"]
    assert_allclose(scale * np.array([*found.dimensions.values()]), [*truth.values()], 0, EXACT_ATOL)
    assert_allclose([found.offsets[n] for n in "AD"], [0.01, -0.02], 0, EXACT_ATOL)
    assert found.dimensions["rocker.length"] == described(m, LINKS)["rocker.length"]


def test_offsets_alone_wrap_angles() -> None:
    """An encoder reads angles in one turn, the other one counts turns."""
    m = kic.load("four-bar")
    A = np.linspace(0.0, 6.2, 40)
    D = m.at({"A": A}).value("D")
    found = m.calibrate({"A": A, "D (deg)": np.rad2deg(D + 3.0) % 360.0 + 720.0}, offsets="D")
    assert_allclose(found.offsets["D"], 3.0, 0, 1e-12)
    assert found.mechanism == m
    assert found.mechanism is found.description


def test_empty_cells_are_left_out() -> None:
    m, rng = kic.load("four-bar"), np.random.default_rng(4)
    dims = ["coupler.length", "D.at.x", "tip.at.x"]
    truth = machine(m, dims, rng)
    data = poses(m, truth, {"A": rng.uniform(0, 6, 30)}, ["tip.x", "tip.y", "D"])
    data = noisy(data, {"tip.x": 1e-4, "tip.y": 1e-4, "D": 1e-3}, rng)
    full = m.calibrate(data, dims)
    data["A"][3], data["tip.x"][5:8], data["D"][9] = np.nan, np.nan, np.nan
    data["tip.y"][5:8] = data["tip.x"][11] = np.nan
    data["rocker"] = np.full(30, np.nan)
    found = m.calibrate(data, dims)
    assert found.samples.tolist() == [k for k in range(30) if k != 3]
    assert np.isnan(found.residual).sum() == 8
    # of tip.x and tip.y, and of D, without the share of three estimates
    assert found.noise_freedom[0] + found.noise_freedom[2] == pytest.approx(29 * 3 - 8 - 3)
    assert (found.freedom < 29 * 3 - 8 - 3).all()
    assert (found.sigma > full.sigma).all()
    assert_allclose(found.values, full.values, 0, 6 * full.sigma.max())
    assert found.unused == ("rocker",)
    # a row without a number is like none
    other = m.calibrate({**data, "coupler.wz": np.full(30, np.nan)}, dims)
    assert other.rows == ("tip.x", "tip.y", "D")


def test_given_noise_of_coordinates_weights_samples() -> None:
    """The estimates are those of least squares with the covariance of each sample, to first order."""
    m, rng = kic.load("four-bar"), np.random.default_rng(8)
    dims = ["coupler.length", "tip.at.y"]
    truth = machine(m, dims, rng)
    data = poses(m, truth, {"A": rng.uniform(0, 6, 20)}, ["tip.x", "tip.y"])
    sizes = {"A": 2e-3, "tip.x": 1e-4, "tip.y": 3e-4}
    data = noisy(data, sizes, rng)
    found = m.calibrate(data, dims, noise=sizes)
    v = m.vary(dims)
    c = v.at({"A": data["A"]} | found.dimensions)
    u = c.coefficients(["tip.x", "tip.y"], order=1)
    y = np.stack([data["tip.x"], data["tip.y"]], axis=1) - u.values
    normal, right = np.zeros((2, 2)), np.zeros(2)
    for G, e in zip(u.G, y, strict=True):
        W = np.linalg.inv(np.diag([1e-8, 9e-8]) + 4e-6 * np.outer(G[:, 0], G[:, 0]))
        normal, right = normal + G[:, 1:].T @ W @ G[:, 1:], right + G[:, 1:].T @ W @ e
    assert_allclose(np.linalg.inv(normal), found.covariance, 1e-9)
    assert np.abs(found.covariance @ right).max() < 1e-5 * found.sigma.max()
    assert np.isinf(found.freedom).all()
    small = m.calibrate(data, dims, noise={n: sizes[n] / 4 for n in ("tip.x", "tip.y")})
    assert (found.sigma > 4 * small.sigma).all()
    assert "times as large as their noise" in small.summary().text()
    assert "times as large as their noise" not in found.summary().text()


def coverage(count: int) -> tuple[float, float]:
    """Shares of 95 % intervals that contain the truth, with estimated and with given noise.

    Cells are empty, and the encoder of the rocker reads few samples.
    """
    m, rng = kic.load("four-bar"), np.random.default_rng(11)
    dims = ["coupler.length", "D.at.x", "tip.at.x", "tip.at.y"]
    truth = machine(m, dims, rng)
    sizes = {"A": 2e-3, "tip.x": 1e-4, "tip.y": 1e-4, "D": 5e-4}
    inside = np.zeros(2)
    for _ in range(count):
        data = poses(m, truth, {"A": rng.uniform(0, 6.2, 25)}, ["tip.x", "tip.y", "D"], {"D": 0.01})
        for k, known in enumerate((None, sizes)):
            given = noisy(data, sizes if known else {n: x for n, x in sizes.items() if n != "A"}, rng)
            given["D"][8:] = given["tip.x"][:2] = np.nan
            found = m.calibrate(given, dims, offsets="D", noise=known)
            low, high = found.interval().T
            right = combined(found, truth, {"D": 0.01})
            inside[k] += np.mean((low < right) & (right < high))
    a, b = inside / count
    return float(a), float(b)


def test_intervals_contain_the_truth() -> None:
    for share in coverage(40):  # the standard deviation of a share is at most 3.5 %
        assert 0.83 < share < 0.995


@pytest.mark.slow
def test_intervals_are_those_of_the_machine_with_undetermined_dimensions_as_described() -> None:
    """Angles give ratios of lengths: intervals contain those of the similar machine with the same rocker."""
    m, rng = kic.load("four-bar"), np.random.default_rng(12)
    rocker, inside = described(m, LINKS)["rocker.length"], list[bool]()
    for _ in range(200):
        truth = machine(m, LINKS, rng, 2e-3)
        data = poses(m, truth, {"A": np.linspace(0.0, 6.2, 60)}, ["D"])
        found = m.calibrate(noisy(data, {"D": 1e-4}, rng), LINKS)
        right = combined(found, {n: x * rocker / truth["rocker.length"] for n, x in truth.items()})
        low, high = found.interval().T
        inside += ((low < right) & (right < high)).tolist()
    assert 0.92 < np.mean(inside) < 0.98


def parallelogram() -> kic.Mechanism:
    """A four-bar with equal opposite links, whose description hides one combination of lengths."""
    height, axis = 0.1 * np.sin(np.pi / 3), (0, 0, 1)
    names = "crank", "coupler", "rocker"
    joints = {
        "A": (("ground", "crank"), (0, 0, 0)),
        "B": (("crank", "coupler"), (0.05, height, 0)),
        "C": (("coupler", "rocker"), (0.25, height, 0)),
        "D": (("ground", "rocker"), (0.2, 0, 0)),
    }
    return kic.Mechanism(
        "parallelogram",
        [kic.Body(name) for name in names],
        [kic.Joint(name, "revolute", pair, at=at, axis=axis) for name, (pair, at) in joints.items()],
        coordinates=["A"],
    )


def test_combinations_that_a_symmetric_description_hides_are_found() -> None:
    m, lengths = parallelogram(), LINKS[1:]
    truth = dict(zip(lengths, (0.103, 0.2024, 0.0985), strict=True))
    data = poses(m, truth, {"A": m.at().value("A") + np.linspace(-0.6, 1.2, 60)}, ["D"])
    found = m.calibrate(data, lengths)
    assert len(found.base) == 3
    assert_allclose([*found.dimensions.values()], [*truth.values()], 0, EXACT_ATOL)
    # noise hides it again, if the machine is as symmetric as its description
    data = poses(m, described(m, lengths), {"A": data["A"]}, ["D"])
    found = m.calibrate(noisy(data, {"D": 1e-3}, np.random.default_rng(1)), lengths)
    assert len(found.base) == 2
    assert found.undetermined == ("rocker.length",)
    text = found.summary().text().replace("\n", " ")
    assert "kept as described (values and intervals hold for such a machine): rocker.length" in text


TILTED = ("shoulder.axis.rx", "shoulder.axis.ry", "tip.at.z", "link1.length", "tip.at.x")


def tilted(count: int, seed: int, size: float, *truth: float) -> tuple[kic.Mechanism, Any, Any]:
    """A planar arm with tilted axes, whose tip leaves the plane; lengths have no effect on this as drawn."""
    m, rng = kic.load("horn-two-link"), np.random.default_rng(seed)
    values = dict(zip(TILTED, truth, strict=True))
    data = poses(m, values, {c: rng.uniform(-1, 1, count) for c in m.coordinates}, ["tip.z"])
    return m, values, noisy(data, {"tip.z": size}, rng)


def test_more_combinations_at_the_estimates_are_optional() -> None:
    """Three have an effect as drawn, and five at the estimates: too few numbers, or a search that fails."""
    m, truth, data = tilted(5, 0, 1e-5, 0.01, -0.02, 0.0, 1.0, 2.0)
    found = m.calibrate(data, TILTED)
    assert found.base.expressions == TILTED[:3]
    for seed in (6, 15, 33, 38):
        m, truth, data = tilted(8, seed, 1e-7, 0.01, -0.02, 0.0, 1.0, 2.0)
        found = m.calibrate(data, TILTED)
        assert_allclose(found.values, combined(found, truth), 0, 40 * found.sigma.max())
    # rounding grows with the number of samples, and leaves no gap at the estimates
    m = parallelogram()
    first = described(m, LINKS[1:])
    errors = dict(zip(first, (1e-4, 7e-5, -4e-5), strict=True))
    A = m.at().value("A") + np.linspace(-0.6, 1.2, 60)
    data = poses(m, {n: x + errors[n] for n, x in first.items()}, {"A": A}, ["D"])
    assert len(m.calibrate(data, LINKS[1:], gap_min=1e8).base) == 2


def test_combinations_with_an_effect_at_the_estimates_are_judged_one_by_one() -> None:
    """The noise is that with them: without them, residuals are ten times as large."""
    inside = list[bool]()
    for seed in range(8):
        m, truth, data = tilted(20, seed, 1e-7, 0.01, -0.02, 0.0, 1.001, 2.0005)
        found = m.calibrate(data, TILTED)
        assert len(found.base) >= 4
        assert found.noise[0] < 3e-7
        low, high = found.interval(0.999).T
        right = combined(found, truth)
        inside += ((low < right) & (right < high)).tolist()
    assert np.mean(inside) > 0.8


def test_remarks_are_rare_on_correct_samples() -> None:
    """With one degree of freedom, with a number that estimates follow, and with noise of coordinates."""
    m, rng = kic.load("four-bar"), np.random.default_rng(0)
    for _ in range(20):
        A = rng.uniform(0, 6.2, 4)
        data = {"A": A, "D": m.at({"A": A}).value("D") + 1e-4 * rng.normal(size=4)}
        text = m.calibrate(data, ["coupler.length", "D.at.x", "crank.length"]).summary().text()
        assert "does not fit" not in text
    A = np.linspace(0, 6, 20)
    x, y, _ = m.at({"A": A}).value("tip").T
    data = {"A": A, "tip.y": y + 1e-5 * rng.normal(size=20), "tip.x": np.where(np.arange(20) == 3, x, np.nan)}
    found = m.calibrate(data, offsets="tip.x")
    assert "does not fit" not in found.summary().text()
    assert np.isnan(found.deviation[3, 1])
    m = m.add(*(kic.Point(f"Q{k}", "rocker", (0.5 + 0.02 * k, 0.02, 0)) for k in range(4)))
    rows = ["D", *(f"Q{k}.{x}" for k in range(4) for x in "xy")]
    sizes, said = {"A": 5e-3} | dict.fromkeys(rows, 1e-5), 0
    for _ in range(30):
        data = poses(m, {"coupler.length": 0.29}, {"A": rng.uniform(0, 6, 20)}, rows)
        found = m.calibrate(noisy(data, sizes, rng), "coupler.length", noise=sizes)
        said += "times as large" in found.summary().text()
        assert 0.5 < found.chi_square / 179 < 2.0
    assert said < 4


@pytest.mark.parametrize("offset", [-3.0, -1.6, 1.6, 3.1, 3.3])
def test_an_encoder_may_have_any_zero(offset: float) -> None:
    m, rng = kic.load("four-bar"), np.random.default_rng(2)
    A = np.linspace(0.0, 6.0, 40)
    D = m.at({"A": A}).value("D") + offset + 1e-4 * rng.normal(size=40)
    found = m.calibrate({"A": A, "D": D}, "coupler.length", offsets="D")
    turned = (found.offsets["D"] - offset + np.pi) % (2 * np.pi) - np.pi
    assert abs(turned) < 5 * found.sigma[1]
    assert abs(found.dimensions["coupler.length"] - 0.29) < 5 * found.sigma[0]


def test_rounding_is_no_effect() -> None:
    """The last joint of an arm turns its own point, and carries nothing else."""
    m, rng = kic.load("panda"), np.random.default_rng(3)
    data = {n: m.at().value(n) + rng.uniform(-0.5, 0.5, 20) for n in m.coordinates}
    rows = ["flange.x", "flange.y", "flange.z"]
    data = noisy(poses(m, {"joint7.at.z": 0.7}, data, rows), dict.fromkeys(rows, 1e-4), rng)
    for name in ("joint7.value", "joint2.at.y"):
        with raises(kic.InputError, match="other rows"):
            m.calibrate(data, name)
    found = m.calibrate(data, ["joint7.value", "joint5.value", "joint2.at.y"])
    assert found.base.without_effect == ("joint7.value", "joint2.at.y")


@pytest.mark.slow
def test_95_percent_of_intervals_contain_the_truth() -> None:
    for share in coverage(500):
        assert 0.93 < share < 0.97


def test_another_branch_is_that_of_near() -> None:
    m, rng = kic.load("four-bar"), np.random.default_rng(3)
    crossed = next(
        c
        for c in m.assembly_modes({"A": 1.2}).configuration
        if abs(c.value("D") - m.at(1.2).value("D")) > 0.1
    )
    A = rng.uniform(1.0, 1.5, 20)
    data = {"A": A, "D": m.at({"A": A}, near=crossed).value("D") + 0.003}
    found = m.calibrate(data, ["coupler.length"], offsets="D", near=crossed)
    assert_allclose(found.offsets["D"], 0.003, 0, EXACT_ATOL)
    assert np.abs(m.calibrate(data, "coupler.length", offsets="D").residual).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "dimensions"),
    [
        ("four-bar", ["coupler.length"]),
        ("four-bar", ["B.at.x", "C.at.coupler.y", "coupler.com.y", "coupler.com.x", "A.value", "tip.at.y"]),
        ("puma560", ["elbow.axis.rx", "elbow.at.link2.x", "link3.com.z", "waist.value"]),
        ("geared-five-bar", ["C.at.x", "E.value"]),
        ("rssr", ["crank.axis.ry", "crank.at.x"]),
        ("scara", ["nut.axis.ry", "sleeve.axis.rx", "elbow.at.x"]),
        ("bevel-wrist", []),
        ("scara", []),
        ("puma560-motors", []),
        ("delta", []),
        ("three-finger-hand", []),
        ("gough-stewart", []),
    ],
)
def test_mechanisms_with_other_dimensions_have_their_own_parts(
    name: str, dimensions: list[str], tmp_path: Path
) -> None:
    """A description with dimensions and the mechanism with locked slides answer alike."""
    m, rng = kic.load(name), np.random.default_rng(9)
    if not dimensions:
        own = [n for part in (*m.joints, *m.points, *m.bodies) for n, _ in dimensions_of(m, part)]
        for one in rng.permutation(own).tolist():
            try:
                m.vary([*dimensions, one])
            except kic.SingularError:
                continue
            dimensions.append(one)
            if len(dimensions) == 5:
                break
    truth, v = machine(m, dimensions, rng), m.vary(dimensions)
    made, locked = with_dimensions(v, m, truth), v.lock(truth)
    assert [b.name for b in made.bodies] == [b.name for b in m.bodies]
    assert made.coordinates == m.coordinates
    if dimensions == ["coupler.length"]:
        assert made["D"].at == m["D"].at
        assert with_dimensions(m.vary("D.at.x"), m, {"D.at.x": 0.5})["D"].at == (0.5, 0.0, 0.0)
    assert sum(b.mass or 0.0 for b in made.bodies) == sum(b.mass or 0.0 for b in m.bodies)
    of = [p.name for p in m.points if p.body != "ground"][:2] or [m.joints[-1].name]
    size = len(m.coordinates)
    values = [c for c in m.coordinates if c.rpartition(".")[2] not in ("wx", "wy", "wz")]
    inputs = {c: made.at().value(c) + 0.01 * rng.normal() for c in values}
    a, b = (made.at(inputs), locked.at(inputs)) if len(values) == size else (made.at(), locked.at())
    made.save(tmp_path / "model.toml")
    assert kic.load(tmp_path / "model.toml") == made
    for key in ("values", "G", "H"):
        one, other = (getattr(c.coefficients(of, order=2), key) for c in (a, b))
        assert_allclose(one, other, 1e-9, 1e-9 * max(1.0, np.abs(other).max()))
    if all(body.mass is not None and body.inertia is not None for body in m.bodies):
        for key in ("I", "load"):
            one, other = (getattr(c.dynamics(), key) for c in (a, b))
            assert_allclose(one, other, 1e-9, 1e-9 * max(1.0, np.abs(other).max()))


def test_groups_of_dimensions_have_one_estimate() -> None:
    m, rng = kic.load("four-bar"), np.random.default_rng(6)
    A = np.linspace(0.0, 6.0, 30)
    slope = {"D.at.ground.x": 0.8, "D.at.ground.y": 0.6, "coupler.com.x": 1.0}
    v = m.vary({"slope": slope, "rise": "tip.at.y"})
    c = v.at({"A": A, "slope": 0.002, "rise": -0.001})
    data = {"A": A, "D": c.value("D"), "tip.x": c.value("tip.x"), "tip.y": c.value("tip.y")}
    found = m.calibrate(data, {"slope": slope, "rise": "tip.at.y"})
    assert_allclose([found.dimensions[n] for n in ("slope", "rise")], [0.002, -0.001], 0, EXACT_ATOL)
    assert_allclose(found.mechanism["coupler"].com[0], m["coupler"].com[0] + 0.002, 0, 1e-3)
    assert_allclose(found.mechanism.at({"A": A}).value("tip.y"), data["tip.y"], 0, EXACT_ATOL)
    again = pickle.loads(pickle.dumps(found))
    assert again.summary().text() == found.summary().text()
    assert again.mechanism == found.mechanism
    # a calibrated mechanism is a description like others
    none = found.mechanism.calibrate(noisy(data, {"D": 1e-6}, rng), ["coupler.length"])
    assert abs(none.values[0] - none.base.values[0]) < 5 * none.sigma[0]


def test_what_has_no_effect_is_named() -> None:
    m = kic.load("four-bar")
    A = np.linspace(0.0, 6.0, 20)
    data = {"A": A, "D": m.at({"A": A}).value("D"), "A.rate": A, "serial": A}
    found = m.calibrate(data, ["coupler.length", "D.at.z", "coupler.com.x"])
    assert found.base.without_effect == ("D.at.z", "coupler.com.x")
    assert found.unused == ("serial", "A.rate")
    text = found.summary().text()
    assert "without effect: D.at.z, coupler.com.x" in text
    assert "columns without use: serial, A.rate" in text
    assert found.dimensions["D.at.z"] == 0.0


@pytest.mark.parametrize("count", [8, 20, 60])
def test_errors_of_samples_are_named(count: int) -> None:
    m, rng = kic.load("four-bar"), np.random.default_rng(5)
    A = np.linspace(0.0, 6.0, count)
    data = {"A": A, "D": m.at({"A": A}).value("D") + 1e-4 * rng.normal(size=count)}
    data["A"][2] = np.nan
    found = m.calibrate(data, "coupler.length", offsets="D")
    assert "does not fit" not in found.summary().text()
    data["D"][6] += 0.01
    found = m.calibrate(data, "coupler.length", offsets="D")
    assert "Sample 6 does not fit the others in D" in found.summary().text()
    table = found.table()
    assert table.index[0].labels[2] == 3
    assert [v.name for v in table.variables] == ["D.residual", "D.residual.before"]


def test_plot_has_a_panel_for_rows_of_the_same_noise() -> None:
    rng = np.random.default_rng(5)
    m = kic.load("four-bar")
    data = poses(m, described(m, ["tip.at.x"]), {"A": np.linspace(0, 6, 20)}, ["tip.x", "tip.y", "D"])
    found = m.calibrate(noisy(data, dict.fromkeys(("tip.x", "tip.y", "D"), 1e-3), rng), ["tip.at.x"])
    assert found.noise[0] == found.noise[1] != found.noise[2]
    picture = found.plot()
    assert len(picture.axes) == 2
    labels = [line.get_label() for line in picture.axes[0].get_lines()]
    assert labels == ["tip.x", "tip.y", "95 %", "−95 %"]


def test_a_drawing_that_the_readings_do_not_fit_is_an_error() -> None:
    m = kic.load("four-bar")
    # large noise that is given is no remark
    A = np.array([1.0, 2.0, 3.0])
    data = {"A": A, "D": m.at({"A": A}).value("D") + 0.1 * np.cos(3 * A)}
    text = m.calibrate(data, offsets="D", noise={"D": 0.15}).summary().text()
    assert "as large as the mechanism" not in text
    data = {"D": [2.3, np.nan, 2.4, 5.5], "A": [0.1, 0.0, 0.2, 0.3]}
    with raises(kic.ConfigurationError, match="in sample 3"):
        m.calibrate(data, "coupler.length", wrt="D")
    # in degrees, and without an end
    A = np.linspace(0.0, 6.0, 30)
    degrees = np.round(np.rad2deg(m.at({"A": A}).value("D")))
    with pytest.warns(kic.errors.DegreesWarning):
        found = m.calibrate({"A": A, "D": degrees}, offsets="D")
    assert "as large as the mechanism" in found.summary().text()
