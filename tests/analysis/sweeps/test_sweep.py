"""Sweeps: values against direct evaluation, reach against geometry, branches, executors, errors."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_all_start_methods, get_context
from types import SimpleNamespace

import numpy as np
import pytest
import sweeping
from commands import HANGS_S
from raising import raises

import kic
from kic.analysis.sweeps.executor import _load, _unpacked, pickled
from kic.analysis.sweeps.grid import make_grid
from kic.numerics.progress import REFRESH_S, Bar

ARM = kic.load("horn-two-link")
FIVE = kic.load("five-bar")
WIDE = {"tip.x": np.linspace(-12, 46, 30), "tip.y": np.linspace(-45, 37, 42)}


def same(a: kic.results.Sweep, b: kic.results.Sweep, tolerance: float = 0.0) -> None:
    """Two sweeps with the same content."""
    assert a.values.keys() == b.values.keys()
    assert a.sides.keys() == b.sides.keys()
    assert (a.reached == b.reached).all()
    assert (a.reasons == b.reasons).all()
    for x, y in ((a.values, b.values), (a.sides, b.sides)):
        for key in x:
            np.testing.assert_allclose(x[key], y[key], rtol=tolerance, atol=tolerance)


# --------------------------------------------------------------------------------------------- values


@pytest.mark.slow
def test_manipulability_of_two_links_in_closed_form() -> None:
    """|sin θ2| l1 l2, over the joints and over the plane, where cos θ2 = (r² − 2)/2."""
    turn, elbow = np.linspace(-3, 3, 7), np.linspace(-3.1, 3.1, 9)
    w = kic.metrics.manipulability("tip.x", "tip.y")
    s = ARM.sweep({"shoulder": turn, "elbow": elbow}, w)
    assert s.shape == (7, 9)
    assert s.reached.all()
    assert s.units == {"manipulability": "m²"}
    np.testing.assert_allclose(s["manipulability"], np.abs(np.sin(elbow)) * np.ones((7, 1)), atol=1e-14)
    x = np.linspace(-2.3, 2.3, 24)
    s = ARM.sweep({"tip.x": x, "tip.y": x}, w, near=ARM.at([0.3, 1.0]))
    r = np.hypot(*np.meshgrid(x, x))
    assert (s.reached == (r < 2)).all()
    c = np.clip((r**2 - 2) / 2, -1, 1)
    np.testing.assert_allclose(s["manipulability"], np.where(r < 2, np.sqrt(1 - c**2), np.nan), atol=1e-12)
    # one elbow all over
    assert (s.configuration.value("elbow")[s.reached] > 0).all()


def test_cells_match_direct_evaluation() -> None:
    c = kic.load("panda").at([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
    m, names = kic.load("panda"), c.coordinates
    fixed = dict(zip(names, c._phi.tolist(), strict=True))
    grid = {**fixed, names[1]: [0.1, 0.4], names[3]: [-1.2, -1.5, -1.8]}
    s = m.sweep(
        grid,
        {
            "w": kic.metrics.manipulability("flange"),
            "κ": kic.metrics.inverse_condition_number("flange"),
            "m": kic.metrics.mass("flange", direction=[0, 0, 1]),
            "I": kic.metrics.inertia(names[0]),
            "h": kic.metrics.static_effort(names[1]),
            "H": "static_effort",
            "min_singular_value": kic.metrics.min_singular_value(of=["flange.x", "flange.y", "flange.z"]),
            "z": "flange.z",
        },
        chunk=2,
    )
    for i, a in enumerate(grid[names[1]]):
        for j, b in enumerate(grid[names[3]]):
            one = m.at({**fixed, names[1]: a, names[3]: b})
            d = one.dynamics()
            e = one.ellipsoid("flange")
            wanted = {
                "w": e.manipulability,
                "κ": e.isotropy,
                "m": one.operational_space("flange").mass([0, 0, 1]),
                "I": d.I[0, 0],
                "h": -d.load[1],
                "H": np.abs(d.load).max(),
                "z": one.value("flange.z"),
                "min_singular_value": one.singularities(of=["flange.x", "flange.y", "flange.z"]).measures[
                    "outputs"
                ],
            }
            for name, number in wanted.items():
                np.testing.assert_allclose(s[name][i, j], number, rtol=1e-12, err_msg=name)


def test_units_of_metrics() -> None:
    s = FIVE.sweep(
        {"A": [1.2, 1.3], "E": 1.5}, {"I": kic.metrics.inertia("A"), "x": "tip.x", "h": "static_effort"}
    )
    assert s.units == {"I": "lbf s²/in in²", "x": "in", "h": "lbf in"}
    s = ARM.sweep({"shoulder": 0.1, "elbow": [1.0]}, sweeping.height, units={"height": "m"})
    assert s.units == {"height": "m"}


@pytest.mark.slow
def test_transmission_vanishes_where_inputs_are_singular() -> None:
    """Inputs A, E of the five-bar are singular where coupler and follower are in line."""
    s = FIVE.sweep(WIDE, kic.metrics.transmission())
    c = s.configuration
    A, C, B = (c.value(name)[..., :2] for name in ("pin_A", "tip", "pin_B"))
    line = cross(C - A, B - C)
    ((metric, rows), side) = next(iter(s.sides.items()))
    assert (metric, rows) == ("transmission", "inputs A, E")
    known = np.isfinite(side)
    assert (side[known] > 0).any()
    assert (side[known] < 0).any()
    # the determinant that the curve is drawn by has the sign of that angle, up to one for the whole branch
    assert len(set(np.sign(side[known] * line[known]).tolist())) == 1
    # and the measure is least near it
    near = np.abs(line) < 0.05 * np.nanmax(np.abs(line))
    assert np.nanmax(s["transmission"][near]) < 0.25 * np.nanmax(s["transmission"])


@pytest.mark.slow
def test_force_margin_against_a_search() -> None:
    c = ARM.at([[0.2, 1.0], [0.8, -1.5], [1.2, 0.4]])
    L = np.array([25.0, 8.0])
    G, h = c.coefficients(["tip.x", "tip.y"], order=1).G, -c.dynamics().load
    f = np.linspace(0, 60, 600_001)
    for d in ([1.0, 0.0], [0.3, -0.8], [0.0, 1.0]):
        margin = kic.metrics.force("tip.x", "tip.y", effort_limits=L, direction=d)(c)
        unit = np.array(d) / np.linalg.norm(d)
        for k in range(3):
            held = np.abs(h[k] + f[:, None] * (G[k].T @ unit)) <= L
            holds = held.all(axis=1)
            assert np.isnan(margin[k]) if not holds.any() else abs(f[holds][-1] - margin[k]) < 2e-4
    angles = np.linspace(0, 2 * np.pi, 20_001)
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    free = kic.metrics.force("tip.x", "tip.y", effort_limits=L, load=False)(c)
    loaded = kic.metrics.force("tip.x", "tip.y", effort_limits=L)(c)
    for k in range(3):
        g = ways @ G[k]
        np.testing.assert_allclose(free[k], (L / np.abs(g)).min(), rtol=1e-6)
        worst = np.where(g > 0, L - h[k], L + h[k]) / np.abs(g)
        if (np.abs(h[k]) <= L).all():
            np.testing.assert_allclose(loaded[k], worst.min(), rtol=1e-6)
        else:
            assert np.isnan(loaded[k])


def test_force_margin_with_an_uninvolved_coordinate() -> None:
    c = ARM.at([[0.0, 0.0]])  # along x no joint feels the tip
    for direction in (None, [1.0], [-1.0]):
        assert kic.metrics.force("tip.x", effort_limits=[25.0, 8.0], direction=direction)(c).tolist() == [
            np.inf
        ]
    # 19.62 and 4.905 hold it; less does not
    assert np.isnan(kic.metrics.force("tip.x", effort_limits=[19.0, 8.0], direction=[1.0])(c)).all()
    # a force up needs the limits only from the load on: down to where pushing helps
    down = kic.metrics.force("tip.y", effort_limits=[15.0, 8.0], direction=[-1.0])(c)
    np.testing.assert_allclose(down, min((15 + 19.62) / 2, 8 + 4.905))


# -------------------------------------------------------------------------------------- reach and branch


@pytest.mark.slow
def test_reach_of_the_five_bar_matches_its_annuli() -> None:
    """A tip at the pin of two legs of 12 and 24: from 12 to 36 away from either pivot."""
    s = FIVE.sweep(WIDE, "tip.x")
    x, y = np.meshgrid(*WIDE.values(), indexing="ij")
    h = FIVE.at().value("h")
    a, b = np.hypot(x, y), np.hypot(x - h[0], y - h[1])
    inside = (a > 12) & (a < 36) & (b > 12) & (b < 36)
    # links of the drawing are rounded to twelve digits; no cell is so near to a circle
    assert min(np.abs(r - e).min() for r in (a, b) for e in (12, 36)) > 1e-3
    from scipy.ndimage import label

    regions, _ = label(inside)
    own = regions[s.reached][0]
    assert (s.reached == (regions == own)).all()
    assert all(s.reasons[~s.reached])
    np.testing.assert_allclose(s["tip.x"][s.reached], x[s.reached], atol=1e-10)


def elbows(c: kic.Configuration) -> tuple[np.ndarray, np.ndarray]:
    """On which side of the line from pivot to tip the pins of both legs are, as areas."""
    A, C, B, h = (c.value(name)[..., :2] for name in ("pin_A", "tip", "pin_B", "h"))
    return cross(A, C), cross(B - h, C - h)


def cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]


@pytest.mark.slow
def test_path_through_a_dead_centre_keeps_its_branch() -> None:
    """Half way from (12, -1) to (12, 1) the first leg is folded: exactly at 12 from its pivot."""
    s = FIVE.sweep({"tip.x": np.linspace(12, 24, 7), "tip.y": np.linspace(-17, 5, 12)}, "A")
    for side, begun in zip(elbows(s.configuration), elbows(FIVE.at()), strict=True):
        assert (np.sign(side[s.reached]) == np.sign(begun)).all()
    start = FIVE.at({"tip.x": 18.0, "tip.y": -15.0})
    below = FIVE.at({"tip.x": 12.0, "tip.y": -1.0}, near=start)
    with raises(kic.ConfigurationError, failed=[()]):
        FIVE.at({"tip.x": 12.0, "tip.y": 1.0}, near=below)


@pytest.mark.slow
@pytest.mark.parametrize("assembly", [0, 1, 2, 3])
def test_map_keeps_its_assembly(assembly: int) -> None:
    """Each leg keeps the side of its elbow on the whole map, for any start."""
    found = FIVE.assembly_modes({"tip.x": 20.0, "tip.y": -20.0})
    assert len(found.counts) == 4
    near = FIVE.at(
        {"tip.x": 20.0, "tip.y": -20.0},
        near=kic.Configuration(FIVE._model, (), found.configuration.state[assembly][None]),
    )
    s = FIVE.sweep({"tip.x": np.linspace(8.3, 26, 10), "tip.y": np.linspace(-30, 20, 26)}, "A", near=near)
    for side, begun in zip(elbows(s.configuration), elbows(near), strict=True):
        assert (np.sign(side[s.reached]) == np.sign(begun)).all()
    # and no neighbour is far away
    for axis in (0, 1):
        assert np.nanmax(np.abs(np.diff(np.unwrap(s["A"], axis=axis), axis=axis))) < 1.2


def test_three_axes_and_a_platform() -> None:
    m = kic.load("three-rrr")
    start = m.at()
    body = next(b.name for b in m.bodies if f"{b.name}.angle" and "platform" in b.name)
    x, y = start.value(f"{body}.x"), start.value(f"{body}.y")
    turn = start.value(f"{body}.angle")
    size = 0.05 * m._model.length
    grid = {
        f"{body}.x": x + size * np.linspace(-1, 1, 4),
        f"{body}.y": y + size * np.linspace(-1, 1, 3),
        f"{body}.angle": turn + np.linspace(-0.1, 0.1, 3),
    }
    s = m.sweep(grid, "transmission")
    assert s.shape == (4, 3, 3)
    assert s.reached.all()
    c = m.at({k: v[1] if k.endswith("x") else v[2] for k, v in grid.items()})
    np.testing.assert_allclose(s["transmission"][1, 2, 2], c.singularities().measures["inputs"], rtol=1e-9)


@pytest.mark.slow
def test_limits_are_not_crossed() -> None:
    """The tip moves around the shoulder in both directions up to the limits of the shoulder."""
    angle = np.linspace(-3.4, 3.4, 35)
    near = ARM.at([0.0, 1.0])
    s = ARM.sweep(
        {"tip.x": np.linspace(-1.8, 1.8, 21), "tip.y": np.linspace(-1.8, 1.8, 21)},
        "shoulder",
        near=near,
        limits={"shoulder": (-2.0, 1.0)},
    )
    free = ARM.sweep({"tip.x": s.axes["tip.x"], "tip.y": s.axes["tip.y"]}, "shoulder", near=near)
    assert np.nanmax(s["shoulder"]) <= 1.0
    assert np.nanmin(s["shoulder"]) >= -2.0
    turned = np.mod(free["shoulder"] + 2.0, 2 * np.pi) - 2.0
    regular = free.reached & (np.hypot(*np.meshgrid(*s.axes.values(), indexing="ij")) > 0.5)
    assert (s.reached == (turned <= 1.0))[regular].all()
    assert any("beyond the limits of 'shoulder' by" in why for why in s.reasons[~s.reached])
    # in joints they are a mask
    s = ARM.sweep({"shoulder": angle, "elbow": 0.5}, "tip.x", limits={"shoulder": (-1.0, 2.0)})
    assert (s.reached == ((angle >= -1) & (angle <= 2))).all()


# ------------------------------------------------------------------------------- executors and chunks


ASKED = [
    kic.metrics.transmission(),
    kic.metrics.inverse_condition_number("tip.x", "tip.y"),
    sweeping.height,
    sweeping.both,
]


@pytest.fixture(scope="module")
def plain() -> kic.results.Sweep:
    return FIVE.sweep(WIDE, ASKED)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 7, 100, 10**6])
def test_chunks_do_not_matter(plain: kic.results.Sweep, chunk: int) -> None:
    grid = WIDE if chunk > 1 else {name: x[12:20] for name, x in WIDE.items()}
    whole = plain if chunk > 1 else FIVE.sweep(grid, ASKED)
    same(whole, FIVE.sweep(grid, ASKED, chunk=chunk))


@pytest.mark.slow
def test_threads(plain: kic.results.Sweep) -> None:
    with ThreadPoolExecutor(2) as pool:
        same(plain, FIVE.sweep(WIDE, ASKED, executor=pool, chunk=60))
        # and they take anything
        s = ARM.sweep({"shoulder": [0.0, 1.0], "elbow": 0.3}, lambda c: c.value("tip.x"), executor=pool)
        assert s["metric"].shape == (2,)


@pytest.mark.slow
def test_processes(plain: kic.results.Sweep) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        same(plain, FIVE.sweep(WIDE, ASKED, executor=pool, chunk=200))
        # errors come home
        with raises(kic.UnknownNameError, name="tipp.x"):
            FIVE.sweep(WIDE, "tipp.x", executor=pool)


@pytest.mark.slow
def test_functions_of_the_session_run_in_processes() -> None:
    pytest.importorskip("cloudpickle")
    row = "tip.x"

    def reach(c: kic.Configuration) -> np.ndarray:
        return c.value(row)

    reach.__module__ = "__main__"
    grid = {"shoulder": [0.0, 1.0], "elbow": 0.3}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for metric in (reach, {"reach": lambda c: c.value("tip.x")}):
            assert (ARM.sweep(grid, metric, executor=pool)["reach"] == ARM.sweep(grid, row)[row]).all()


@pytest.mark.parametrize("error", [None, TypeError("cannot pickle a lock")])
def test_metrics_that_processes_cannot_import_raise(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without cloudpickle, and where it fails, functions of modules are sent by name, and lambdas raise."""

    def dumps(shared: object) -> bytes:
        raise error

    monkeypatch.setitem(sys.modules, "cloudpickle", SimpleNamespace(dumps=dumps) if error else None)
    sent = pickled(sweeping.height, False)
    assert _load(sent) is sweeping.height
    remedy = "cannot pickle a lock.*or use threads" if error else "use threads, or install cloudpickle"
    with pytest.raises(kic.InputError, match=f"must be importable.*<lambda>.*{remedy}"):
        pickled(SimpleNamespace(metrics=lambda c: c), False)
    with raises(kic.InputError, key="of"):
        _unpacked(len, sent.replace(b"height", b"heigth"))


class Broken(Executor):
    """Executor that breaks after its first job, with an error."""

    def __init__(self, error: BrokenProcessPool) -> None:
        self.count, self.error = 0, error

    def submit(self, function, *call, **more) -> Future:
        future, self.count = Future(), self.count + 1
        if self.count > 1:
            future.set_exception(self.error)
        else:
            future.set_result(function(*call))
        return future


def test_broken_pool_names_the_results_so_far() -> None:
    grid = {"shoulder": [0.0, 1.0], "elbow": 0.3}
    error = BrokenProcessPool("a process ended")
    for _ in range(2):  # the same error has one note
        with pytest.raises(BrokenProcessPool):
            ARM.sweep(grid, "tip.x", executor=Broken(error), chunk=1)
        (note,) = error.__notes__
        assert "attribute `sweep`" in note
        assert np.isfinite(error.sweep["tip.x"]).tolist() == [True, False]


AXES = {"tip.x": np.linspace(10, 30, 3), "tip.y": [0.0, 20.0]}
SAME = {
    "name": ["transmission", "tip.x"],
    "function": {"transmission": kic.metrics.transmission(), "tip.x": lambda c: c.value("tip.x")},
    "part of a dict": ["transmission", lambda c: {"tip.x": c.value("tip.x"), "tip.y": c.value("tip.y")}],
}


@pytest.mark.parametrize("of", SAME.values(), ids=SAME)
def test_metric_that_is_an_axis(of, tmp_path) -> None:
    s = FIVE.sweep(AXES, of)
    assert 0 < s.reached.sum() < 6
    np.testing.assert_allclose(s["tip.x"], np.where(s.reached, AXES["tip.x"][:, None], np.nan), rtol=1e-12)
    s.table().to_csv(tmp_path / "s.csv")
    head = (tmp_path / "s.csv").read_text(encoding="utf-8").splitlines()[0]
    assert re.sub(r" \(.*?\)", "", head) == "tip.x,tip.y,transmission,reached"
    pytest.importorskip("pandas")
    assert list(s.table().to_dataframe().reset_index()) == ["tip.x", "tip.y", "transmission", "reached"]
    assert list(s.table("tip.x").to_dataframe().reset_index()) == ["tip.x", "tip.y"]
    pytest.importorskip("xarray")
    assert s.table().to_xarray().transmission.dims == ("tip.x", "tip.y")
    assert s.table("tip.x").to_xarray()["tip.x"].values.tolist() == [10.0, 20.0, 30.0]


def test_metric_that_is_an_axis_is_one_in_all_chunks(tmp_path) -> None:
    """Rounding about zero is relative to the length, not to the cells of a job."""
    grid = {"tip.x": [1.0], "tip.y": [-0.5, 0.0, 0.5]}
    near = ARM.at({"tip.x": 1.0, "tip.y": -0.5}, near=ARM.at([-1.0, 1.0]))
    of = {"tip.y": lambda c: c.value("tip.y") + 1e-15}
    for chunk in (1, None):
        s = ARM.sweep(grid, of, near=near, chunk=chunk)
        assert s.reached.all()
    for name in ("tip.x", "tipy"):  # an axis without a metric, and a mistake
        with raises(kic.UnknownNameError, name=name) as e:
            s.table(name).to_csv(tmp_path / "s.csv")
        assert "tip.y" in str(e.value)


@pytest.mark.parametrize("start", ["spawn", "fork"])
@pytest.mark.slow
def test_functions_of_scripts_are_sent_by_name(start: str, tmp_path) -> None:
    """They find what the initializer of the pool has set, and carry no data of the script."""
    if start not in get_all_start_methods():
        pytest.skip("this system has no fork")
    script = tmp_path / "script.py"
    script.write_text(f"""
import kic
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
factor = None
def start():
    global factor
    factor = 3.0
def scaled(c):
    return factor * c.value("tip.x")
if __name__ == "__main__":
    grid = {{"shoulder": [0.0, 1.0], "elbow": 0.3}}
    with ProcessPoolExecutor(1, mp_context=get_context("{start}"), initializer=start) as pool:
        s = kic.load("horn-two-link").sweep(grid, [scaled, "tip.x"], executor=pool, progress=False)
    print((s["scaled"] == 3.0 * s["tip.x"]).all())
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=HANGS_S)
    assert done.stdout == "True\n", done.stderr


class Slow(Executor):
    """Executor whose jobs never finish."""

    def __init__(self) -> None:
        self.futures: list[Future] = []

    def submit(self, *call, **more) -> Future:
        self.futures.append(Future())
        return self.futures[-1]


def test_interrupt_cancels_pending_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args, **more):
        raise KeyboardInterrupt

    slow = Slow()
    monkeypatch.setattr("kic.analysis.sweeps.executor.wait", stop)
    s = ARM.sweep({"shoulder": np.linspace(0, 1, 10), "elbow": 0.2}, "tip.x", executor=slow, chunk=3)
    assert len(slow.futures) == 4
    assert all(future.cancelled() for future in slow.futures)
    assert s.stopped == "interrupted, 0 of 10 cells were evaluated"
    assert np.isnan(s["tip.x"]).all()
    assert s.reached.all()


# -------------------------------------------------------------------------- failures and interruptions


class Stopping:
    """Metric that is interrupted by Ctrl-C, or that raises an error."""

    def __init__(self, calls: int, error: BaseException) -> None:
        self.left, self.error, self.__name__ = calls, error, "stopping"

    def __call__(self, c: kic.Configuration) -> np.ndarray:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return c.value("tip.y")


def test_interrupt_keeps_results() -> None:
    grid = {"shoulder": np.linspace(0, 1, 10), "elbow": 0.2}
    s = ARM.sweep(grid, Stopping(2, KeyboardInterrupt()), chunk=3)
    assert s.stopped == "interrupted, 6 of 10 cells were evaluated"
    assert s.stopped in s.summary().text()
    np.testing.assert_array_equal(s["stopping"][:6], ARM.sweep(grid, "tip.y")["tip.y"][:6])
    assert np.isnan(s["stopping"][6:]).all()
    assert set(s.reasons[6:]) == {"not evaluated: the sweep ended before"}
    assert set(s.reasons[:6]) == {""}


def test_interrupt_while_cells_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    from kic.analysis.sweeps.problem import SweepProblem

    calls = []

    def lead(*job):
        calls.append(job)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return continue_cells(*job)

    continue_cells = SweepProblem.continue_cells
    monkeypatch.setattr(SweepProblem, "continue_cells", lead)
    s = FIVE.sweep(WIDE, "tip.x")
    assert 0 < s.reached.sum() < 300
    assert s.stopped.startswith("interrupted, 0 of")
    assert all(s.reasons.ravel())
    calls[:] = [None] * 5  # before the first cell there is nothing to keep
    with pytest.raises(KeyboardInterrupt):
        FIVE.sweep(WIDE, "tip.x")


def test_errors_carry_partial_results() -> None:
    grid = {"shoulder": np.linspace(0, 1, 10), "elbow": 0.2}
    with pytest.raises(ZeroDivisionError) as caught:
        ARM.sweep(grid, Stopping(2, ZeroDivisionError("oh")), chunk=3)
    s = caught.value.sweep
    assert np.isfinite(s["stopping"]).sum() == 6
    assert s.stopped == "oh"


def test_reasons_do_not_depend_on_chunks() -> None:
    elbow = np.array([-0.5, 0.0, 0.5, np.pi])
    grid = {"shoulder": np.linspace(0, 1, 3), "elbow": elbow}
    mass = kic.metrics.mass("tip.x", "tip.y", direction=[1, 0])
    s = ARM.sweep(grid, mass)
    assert s.reached.all()
    assert np.isnan(s["effective mass"][:, [1, 3]]).all()
    assert np.isfinite(s["effective mass"][:, [0, 2]]).all()
    assert (s.reasons[:, [0, 2]] == "").all()
    assert all(
        re.match(r"The task tip\.x, tip\.y of 'horn-two-link' is singular here", w) for w in s.reasons[:, 1]
    )
    assert "cells reached without a value: The task" in s.summary().text()
    same(s, ARM.sweep(grid, mass, chunk=1))
    # nothing but such cells
    s = ARM.sweep({"shoulder": [0.1, 0.2], "elbow": 0.0}, mass)
    assert np.isnan(s["effective mass"]).all()
    s = ARM.sweep(grid, {"n": _nothing_at_zero})
    assert set(s.reasons[:, 1]) == {"'n' has no value there"}


def _nothing_at_zero(c: kic.Configuration) -> np.ndarray:
    elbow = c.value("elbow")
    return np.where(elbow == 0, np.nan, elbow)


def test_metrics_that_need_an_inverse_of_the_mass_matrix() -> None:
    """A point mass at the tip of a massless arm: accelerations are undefined where the arm is stretched."""
    massless, mass = {"mass": 0, "inertia": (0, 0, 0)}, {"mass": 1, "inertia": (0, 0, 0)}
    m = kic.load("horn-two-link").replace("link1", **massless).replace("link2", com=(2, 0, 0), **mass)
    grid = {"shoulder": [0.0, 0.1], "elbow": [-0.5, 0.0, 0.5]}
    for metric in (
        lambda c: c.forward_dynamics()[..., 0],
        lambda c: c.dynamics().forward_dynamics([0, 0], [0, 0])[..., 0],
    ):
        found = m.sweep(grid, {"a": metric})
        assert np.isfinite(found.values["a"]).tolist() == [[True, False, True]] * 2
        assert ["moves no mass" in reason for reason in found.reasons[:, 1]] == [True, True]


@pytest.mark.slow
def test_no_cell_in_reach() -> None:
    with raises(kic.ConfigurationError, failed=[(0,), (1,)]) as caught:
        FIVE.sweep({"tip.x": [300.0, 310.0], "tip.y": 5.0}, "A")
    assert all(caught.value.reasons)


def test_other_invalid_arguments_raise() -> None:
    grid = {"shoulder": [0.1, 0.2], "elbow": 0.2}
    with raises(kic.InputError, key="executor"):  # has submit, as a Client of Dask
        ARM.sweep(grid, "tip.x", executor=SimpleNamespace(submit=len))
    with raises(kic.UnknownNameError, name="tip") as caught:
        ARM.sweep(grid, "tip.x", units={"tip": "m"})
    assert np.isfinite(caught.value.sweep["tip.x"]).all()
    for made in (kic.metrics.inverse_condition_number, kic.metrics.manipulability, kic.metrics.mass):
        with raises(kic.InputError, key="of"):
            made()


def test_functions_without_a_name_are_called_metric() -> None:
    s = ARM.sweep({"shoulder": [0.1, 0.2], "elbow": 0.2}, lambda c: c.value("tip.x"), units={"metric": "m"})
    assert s.units == {"metric": "m"}
    with raises(kic.InputError, key="of", name="metric"):
        ARM.sweep({"shoulder": [0.1], "elbow": 0.2}, [lambda c: c.value("tip.x"), lambda c: c.value("tip.y")])


def test_rounding_is_shown_as_zero() -> None:
    s = ARM.sweep({"shoulder": 0.0, "elbow": np.linspace(-2.5, 2.5, 60)}, "elbow")
    assert abs(np.median(s["elbow"])) > 0  # -2e-16
    assert "e-1" not in s.summary().text()


@pytest.mark.slow
def test_remaining_time_needs_an_estimate(capsys: pytest.CaptureFixture) -> None:
    bar = Bar(True)
    for share, text in ((0.0, "  0%"), (0.5, " 50%, ")):
        time.sleep(1.5 * REFRESH_S)
        bar.show(share)
        shown = capsys.readouterr().err
        assert text in shown
        assert (" s left" in shown) == bool(share)


@pytest.mark.slow
def test_progress(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kic.numerics.progress.REFRESH_S", 0.0)
    FIVE.sweep(WIDE, "tip.x", progress=True)
    assert "kic: [" in capsys.readouterr().err
    ARM.sweep({"shoulder": [0.1, 0.2], "elbow": 0.2}, "tip.x")
    assert not capsys.readouterr().err


def test_neighbours_of_a_grid() -> None:
    grid = make_grid({"a": [0.0, 1.0], "b": [0.0, 1.0, 2.0], "c": 3.0})
    assert grid.neighbours().tolist() == [
        [-1, 3, -1, 1], [-1, 4, 0, 2], [-1, 5, 1, -1], [0, -1, -1, 4], [1, -1, 3, 5], [2, -1, 4, -1],
    ]  # fmt: skip
    assert grid.by_distance({"a": 1.0, "b": 1.9})[0] == 5


def test_axes_of_a_grid_are_components_of_a_rotation_vector() -> None:
    """Those of a spherical joint beside a loop, beginning at the cell that is nearest to the start."""
    m = kic.load("four-bar")
    arm = kic.Body("arm", mass=1.0, com=(0.1, 0.2, 1.0), inertia=(1.0, 1.0, 1.0))
    m = m.add(arm, kic.Joint("S", "spherical", ("coupler", "arm"), at=m["B"].at))
    grid = {"A": np.linspace(1.0, 2.0, 3), "S.1": [-0.3, 0.1], "S.3": [0.2, 0.5], "S.2": 0.1}
    m, near = m.replace(coordinates=["A", "S"]), {"A": 1.4, "S": [0.1, 0.1, 0.4]}
    found = m.sweep(grid, ["arm.x", "arm.z"], near=m.at(near))
    assert found.shape == (3, 2, 2)
    assert found.reached.all()
    A, first, third = np.meshgrid(*(grid[name] for name in ("A", "S.1", "S.3")), indexing="ij")
    c = m.at({"A": A, "S": np.stack([first, np.full(A.shape, 0.1), third], axis=-1)})
    for row in ("arm.x", "arm.z"):
        # lengths are below 2 and conditions below 1e3
        assert np.abs(found.values[row] - c.value(row)).max() < 2e-10
