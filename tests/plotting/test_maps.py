"""Maps and plots over time: the axes show the requested data with names and units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import raises

import kic
from kic.plotting.maps import colour_limits, true_runs, zero_crossings
from kic.plotting.plots import axis_limits, separate

pytest.importorskip("matplotlib", reason="needs Matplotlib: pip install -e '.[plot]'")

ARM = kic.load("horn-two-link")
FIVE = kic.load("five-bar")


@pytest.fixture(scope="module")
def joints() -> kic.results.Sweep:
    grid = {"shoulder": np.linspace(-1, 1, 5), "elbow": np.linspace(-1, 2, 13)}
    asked = {
        "w": kic.metrics.manipulability("tip.x", "tip.y"),
        "mass": kic.metrics.mass("tip.x", "tip.y", direction=[1, 0]),
        "tip": lambda c: c.value("tip"),
    }
    return ARM.sweep(grid, asked)


@pytest.fixture(scope="module")
def plane() -> kic.results.Sweep:
    grid = {"tip.x": np.linspace(-2.2, 2.2, 12), "tip.y": np.linspace(-2.2, 2.2, 14)}
    return ARM.sweep(grid, kic.metrics.inverse_condition_number("tip.x", "tip.y"), near=ARM.at([0.3, 1.0]))


def legend(picture) -> list[str]:
    return [text.get_text() for box in picture.figure.legends for text in box.get_texts()]


def test_a_map_shows_its_values(joints: kic.results.Sweep, tmp_path) -> None:
    picture = joints.plot("w")
    mesh = picture.axes.collections[0]
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).T, joints["w"])
    assert picture.axes.get_xlabel() == "shoulder (rad)"
    assert picture.axes.get_ylabel() == "elbow (rad)"
    assert picture.figure.axes[1].get_ylabel() == "w (m²)"
    assert mesh.get_cmap().name == "viridis"
    # cells have the grid's values in their middle
    corners = mesh.get_coordinates()
    np.testing.assert_allclose(
        (corners[0, 1:, 0] + corners[0, :-1, 0]) / 2, joints.axes["shoulder"], atol=1e-14
    )
    assert picture.axes.get_aspect() == "auto"
    assert picture.save(tmp_path / "w.png").stat().st_size > 5000


def test_the_singular_curve_is_where_the_determinant_vanishes(joints: kic.results.Sweep) -> None:
    picture = joints.plot("w", contours=0)
    assert legend(picture) == ["outputs tip.x, tip.y singular"]
    curve = picture.axes.collections[-1].get_paths()[0].vertices
    # elbow = 0, between cells at ±0.25: sin is odd there
    np.testing.assert_allclose(curve[:, 1], 0.0, atol=1e-12)
    assert (curve[0, 0], curve[-1, 0]) in ((-1.0, 1.0), (1.0, -1.0))


def test_cells_without_value_are_dotted(joints: kic.results.Sweep) -> None:
    grid = {"shoulder": [-0.5, 0.5], "elbow": [-1.0, 0.0, 1.0]}
    s = ARM.sweep(grid, kic.metrics.mass("tip.x", "tip.y", direction=[1, 0]))
    picture = s.plot()
    assert "no value" in legend(picture)
    dots = picture.axes.get_lines()[0].get_xydata()
    assert sorted(map(tuple, dots.tolist())) == [(-0.5, 0.0), (0.5, 0.0)]
    assert picture.figure.axes[-1].get_ylabel() == "effective mass (kg)"


@pytest.mark.slow
def test_unreached_cells_are_hatched(plane: kic.results.Sweep) -> None:
    picture = plane.plot()
    assert legend(picture)[0] == "not reached"
    assert picture.axes.patch.get_hatch() == "/////"
    shown = np.ma.getmaskarray(picture.axes.collections[0].get_array()).T
    assert (shown == ~plane.reached).all()
    assert picture.axes.get_aspect() == 1.0
    assert (picture.axes.get_xlabel(), picture.axes.get_ylabel()) == ("tip.x (m)", "tip.y (m)")


@pytest.mark.slow
def test_one_axis_is_a_line(plane: kic.results.Sweep, joints: kic.results.Sweep) -> None:
    picture = plane.plot(at={"tip.y": 0.2})
    x, y = picture.axes.get_lines()[0].get_data()
    np.testing.assert_array_equal(x, plane.axes["tip.x"])
    k = int(np.argmin(np.abs(plane.axes["tip.y"] - 0.2)))
    np.testing.assert_array_equal(y, plane["inverse condition number"][:, k])
    assert picture.axes.get_title() == f"tip.y = {plane.axes['tip.y'][k]:.4g} m"
    assert picture.axes.get_ylabel() == "inverse condition number"
    assert legend(picture) == ["not reached"]
    hatched = [patch for patch in picture.axes.patches if patch.get_hatch()]
    assert len(hatched) == len(true_runs(~plane.reached[:, k])) == 2
    picture = joints.plot("w", at={"shoulder": 0.0})
    assert legend(picture) == ["outputs tip.x, tip.y singular"]
    np.testing.assert_allclose(picture.axes.get_lines()[-1].get_xdata(), [0.0, 0.0], atol=1e-12)


def test_a_cut_through_three_axes() -> None:
    m = kic.load("horn-three-link")
    a, b, c = m.coordinates
    s = m.sweep({a: [0.0, 0.5], b: [0.1, 0.2, 0.3], c: [0.3, 0.4]}, "static_effort")
    picture = s.plot(at={b: 0.21})
    np.testing.assert_array_equal(
        np.asarray(picture.axes.collections[0].get_array()).T, s["largest static effort"][:, 1]
    )
    assert picture.axes.get_title() == f"{b} = 0.2 rad"


def test_colour_range_excludes_outliers(joints: kic.results.Sweep) -> None:
    values = np.concatenate([np.linspace(0, 1, 999), [1e6]])
    low, high, extend = colour_limits(values, None)
    assert low == 0
    assert 0.9 < high < 1.1
    assert extend == "max"
    assert colour_limits(-values, None)[2] == "min"
    assert colour_limits(values, (0.2, 0.4)) == (0.2, 0.4, "both")
    picture = joints.plot("w", bounds=(0.1, 0.5))
    assert picture.axes.collections[0].get_clim() == (0.1, 0.5)
    assert zero_crossings(np.array([0.0, 1.0]), np.array([1.0, 2.0])).size == 0


# ------------------------------------------------------------------------------------------ over time


@pytest.fixture(scope="module")
def run() -> kic.results.Simulation:
    return ARM.simulate(np.linspace(0, 0.3, 31), near=ARM.at([0.3, 0.4]), effort=[1.0, -2.0])


def lines(axes) -> dict[str, np.ndarray]:
    return {
        line.get_label(): line.get_ydata()
        for line in axes.get_lines()
        if not line.get_label().startswith("_")
    }


@pytest.mark.slow
def test_panels_of_a_run(run: kic.results.Simulation, tmp_path) -> None:
    picture = run.plot()
    assert [axes.get_ylabel() for axes in picture.axes] == ["value (rad)", "rate (rad/s)", "effort (N m)"]
    assert [axes.get_xlabel() for axes in picture.axes] == ["", "", "t (s)"]
    for axes, wanted in zip(picture.axes, (run.q, run.qd, run.effort), strict=True):
        found = lines(axes)
        assert list(found) == ["shoulder", "elbow"]
        np.testing.assert_array_equal(np.stack(list(found.values()), axis=1), wanted)
        # each is named in its colour, beside it
        said = {text.get_text(): text.get_color() for text in axes.texts}
        assert said == {line.get_label(): line.get_color() for line in axes.get_lines()}
    assert picture.save(tmp_path / "run.svg").read_text().count("<g id=") > 3
    # names at the ends do not overlap
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(picture.figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    for axes in picture.axes:
        boxes = [text.get_window_extent(renderer) for text in axes.texts]
        for k, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[k + 1 :])


def test_names_of_a_run(run: kic.results.Simulation) -> None:
    picture = run.plot(["tip", "energy", "elbow", "accelerations"])
    assert [axes.get_ylabel() for axes in picture.axes] == [
        "value (m)", "energy (J)", "residual (J)", "value (rad)", "acceleration (rad/s²)",
    ]  # fmt: skip
    tip, energy, residual, elbow, _ = map(lines, picture.axes)
    assert list(tip) == ["tip.x", "tip.y"]  # z stands still
    np.testing.assert_array_equal(tip["tip.y"], run["tip.y"])
    assert list(energy) == ["kinetic", "potential", "total", "work"]
    np.testing.assert_array_equal(energy["work"], run.energy.work)
    np.testing.assert_array_equal(residual["residual"], run.energy.residual)
    np.testing.assert_array_equal(elbow["elbow"], run["elbow"])
    with raises(kic.UnknownNameError, name="energie"):
        run.plot("energie")
    with raises(kic.UnknownNameError, name="currents"):  # nothing has a voltage
        run.plot("currents")


def test_motor_voltage_and_current() -> None:
    motors = [
        kic.Motor("M", ["shoulder"], resistance=0.5, inductance=1e-3, torque_constant=0.02),
        kic.Motor("N", ["elbow"]),
    ]
    driven = replace(ARM, motors=motors)
    made = driven.simulate(0.02, near=driven.at([0.1, 0.2]), voltage=[3.0, 0.0])
    picture = made.plot(["torques", "currents", "voltages"])
    labels = [axes.get_ylabel() for axes in picture.axes]
    assert labels == ["torque (N m)", "current (A)", "voltage (V)"]
    torque, current, voltage = map(lines, picture.axes)
    np.testing.assert_array_equal(torque["M"], made.torque[:, 0])
    np.testing.assert_array_equal(current["M"], made.current[:, 0])
    assert "N" in torque
    assert "N" not in current
    assert list(voltage) == ["M"]
    with raises(kic.UnknownNameError, name="nix"):
        made.plot("nix")


def test_units_of_another_drawing() -> None:
    run = FIVE.simulate([0.0, 0.01], near=FIVE.at(), effort=[1.0, 2.0])
    labels = [axes.get_ylabel() for axes in run.plot(["tip", "efforts", "energy"]).axes]
    assert labels == ["value (in)", "effort (lbf in)", "energy (lbf in)", "residual (lbf in)"]


def test_events_are_marked() -> None:
    event = lambda t, now: now.q[0] - 0.25  # noqa: E731
    run = ARM.simulate(np.linspace(0, 0.3, 11), near=ARM.at([0.3, 0.4]), events=event)
    assert len(run.events) == 1
    axes = run.plot("elbow").axes[0]
    assert [line.get_xdata()[0] for line in axes.get_lines() if line.get_label() != "elbow"] == [
        run.events[0][0]
    ]


def test_trajectories_and_courses() -> None:
    path = kic.trajectory.quintic({"A": 1.2}, {"A": 1.6}, duration=0.5)
    t = np.linspace(0, 0.5, 401)
    plain, known = path.plot(), path.plot(kic.load("four-bar"))
    assert [a.get_ylabel() for a in plain.axes] == ["value", "rate", "acceleration", "jerk"]
    assert [a.get_ylabel() for a in known.axes] == [
        "value (rad)", "rate (rad/s)", "acceleration (rad/s²)", "jerk (rad/s³)",
    ]  # fmt: skip
    assert plain.axes[-1].get_xlabel() == "t"
    for axes, wanted in zip(known.axes, path(t), strict=True):
        np.testing.assert_array_equal(lines(axes)["A"], wanted[:, 0])
    course = path.on(kic.load("four-bar"), 21)
    picture = course.plot("tip.x")
    for axes, wanted in zip(picture.axes, course.of("tip.x"), strict=True):
        np.testing.assert_array_equal(lines(axes)["tip.x"], wanted[:, 0])
    assert picture.axes[2].get_ylabel() == "acceleration (m/s²)"
    assert list(lines(course.plot().axes[0])) == ["A"]


def test_paths_that_were_followed() -> None:
    m = kic.load("three-link-arm")
    near = m.at([[0.4, 0.5, 0.6], [0.5, 0.5, 0.6]])
    x = near.value("frame3.x")
    f = m.track({"frame3.x": lambda t: x[..., None] - 0.1 * np.sin(t)}, np.linspace(0, 1, 5), near=near)
    with raises(kic.InputError, key="member"):
        f.plot()
    picture = f.plot(member=1)
    labels = [axes.get_ylabel() for axes in picture.axes]
    assert [label.split(" (")[0] for label in labels] == ["value", "error", "value", "rate"]
    assert labels[2:] == ["value (rad)", "rate (rad/s)"]
    np.testing.assert_array_equal(lines(picture.axes[0])["frame3.x"], f.configuration.value("frame3.x")[:, 1])
    np.testing.assert_array_equal(lines(picture.axes[1])["frame3.x"], f.error[:, 1, 0])
    np.testing.assert_array_equal(np.stack(list(lines(picture.axes[3]).values()), axis=1), f.qd[:, 1])


def test_rounding_is_not_blown_up() -> None:
    assert axis_limits([np.array([1.0, 1.0 + 1e-12])]) == pytest.approx((0.5, 1.5))
    assert axis_limits([np.zeros(3)]) == (-0.5, 0.5)
    assert axis_limits([np.full(2, np.nan)]) == (-1.0, 1.0)
    places = np.array([0.5, 0.1, 0.5, 0.98, 0.99, 0.5])
    moved = separate(places, 0.1)
    assert np.diff(np.sort(moved)).min() > 0.1 - 1e-12
    assert (np.argsort(moved, kind="stable") == np.argsort(places, kind="stable")).all()
    assert moved.max() <= 1
    assert moved[1] == 0.1


def test_without_matplotlib(
    joints: kic.results.Sweep, run: kic.results.Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in (lambda: joints.plot("w"), run.plot):
        with raises(kic.MissingExtraError, extra="plot"):
            plot()
