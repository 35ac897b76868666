"""Results as data frames, labelled arrays and CSV files: the numbers of the results, names and units."""

from __future__ import annotations

import csv
import pickle

import numpy as np
import pytest

import kic
from kic.numerics.tables import DataTable, TableAxis, Variable

pandas = pytest.importorskip("pandas")
xarray = pytest.importorskip("xarray")
ARM = kic.load("horn-two-link")
C = ARM.at([[0.0, 0.5], [0.1, 0.7], [0.2, 0.9]])


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return head, rows


def test_coefficients(tmp_path):
    found = C.coefficients("tip", order=3)
    frame = found.table().to_dataframe()
    assert frame.index.names == ["member", "row"]
    assert frame.attrs["units"]["G[elbow]"] == "1/rad"
    assert frame.loc[(1, "tip.y"), "unit"] == "m"
    assert frame.loc[(1, "tip.y"), "G[elbow]"] == found.G[1, 1, 1]
    assert frame.loc[(2, "tip.x"), "D[shoulder, elbow, elbow]"] == found.D[2, 0, 0, 1, 1]
    data = found.table().to_xarray()
    assert data.H.dims == ("member", "row", "coordinate", "coordinate_2")
    assert np.array_equal(data.H, found.H)
    assert (
        data.H.sel(member=0, row="tip.x", coordinate="elbow", coordinate_2="shoulder") == found.H[0, 0, 1, 0]
    )
    found.table("G").to_csv(tmp_path / "c.csv")
    head, rows = read(tmp_path / "c.csv")
    assert head == ["member", "row", "G[shoulder] (1/rad)", "G[elbow] (1/rad)"]
    assert np.array_equal(np.array([row[2:] for row in rows], float), found.G.reshape(-1, 2))


@pytest.mark.parametrize(
    "name", ["=cmd|' /C calc'!A0", "+1+1", "-x", "@SUM(A1)", "＝1", "'a", "''", "a", "1-1"]
)
def test_names_are_not_formulas(name: str, tmp_path) -> None:
    """One apostrophe marks a text; without it, the file has the same names and labels."""
    table = DataTable("t", (TableAxis(name, [name, 1]),), (Variable(name, np.array([-1.0, np.nan]), "=m"),))
    table.to_csv(tmp_path / "t.csv")
    head, rows = read(tmp_path / "t.csv")
    cells = [*head, rows[0][0]]
    assert not any(cell.startswith(tuple("=+-@＝＋－＠")) for cell in cells)
    assert [cell.removeprefix("'") for cell in cells] == [name, f"{name} (=m)", name]
    assert [row[1] for row in rows] == ["-1.0", ""]


def test_labels_that_are_numbers_or_lone_surrogates(tmp_path) -> None:
    labels = ["-1.5", "+1", "-inf", "-x", "\ud800"]
    DataTable("t", (TableAxis("x", labels),), (Variable("y", np.ones(5)),)).to_csv(tmp_path / "t.csv")
    _, rows = read(tmp_path / "t.csv")
    assert [row[0] for row in rows] == ["-1.5", "+1", "-inf", "'-x", "\\ud800"]


def test_dynamics():
    found = C.dynamics()
    frame = found.table().to_dataframe()
    assert frame.attrs["units"]["P[elbow, shoulder]"] == "s² 1/(rad rad)"
    assert frame.loc[(0, "elbow"), "unit"] == "N m"
    assert frame.loc[(2, "elbow"), "load"] == found.load[2, 1]
    assert np.array_equal(found.table().to_xarray().P, found.P)
    # columns do not depend on the numbers
    assert not found.damping.any()
    assert not found.table("damping").to_dataframe().filter(like="damping").to_numpy().any()


def test_joint_forces_and_configurations(tmp_path):
    f = C.joint_forces()
    frame = f.table().to_dataframe()
    assert frame.attrs["units"]["elbow.mz"] == "N m"
    assert np.array_equal(frame["elbow.fy"], f["elbow"].force[:, 1])
    assert np.array_equal(frame["shoulder.effort"], f.effort[:, 0])
    places = C.table(["tip", "elbow"]).to_dataframe()
    assert list(places) == ["tip.x", "tip.y", "tip.z", "elbow"]
    assert np.array_equal(places["tip.y"], C.value("tip.y"))
    assert C.table().to_dataframe().attrs["units"] == {"member": "", "shoulder": "rad", "elbow": "rad"}
    one = ARM.at([0.0, 0.5]).table("tip").to_dataframe()
    assert one.shape == (1, 3)
    with pytest.raises(kic.UnknownNameError):
        f.table("nothing").to_csv(tmp_path / "f.csv")
    with pytest.raises(kic.FileError):
        f.table().to_csv(tmp_path / "missing" / "f.csv")


def test_sweeps_are_indexed_by_their_axes():
    s = ARM.sweep({"shoulder": [0.0, 0.5], "elbow": [0.3, 0.6, 0.9]}, {"x": lambda c: c.value("tip.x")})
    frame = s.table().to_dataframe()
    assert frame.index.names == ["shoulder", "elbow"]
    assert frame.loc[(0.5, 0.6), "x"] == s["x"][1, 1]
    data = s.table().to_xarray()
    assert data.elbow.attrs["units"] == "rad"
    assert data.x.sel(shoulder=0.5, elbow=0.9) == s["x"][1, 2]


def test_motions_and_runs(tmp_path):
    motion = kic.trajectory.septic([0.0, 0.0], [0.5, 1.0], duration=1.0).on(ARM, 5)
    frame = motion.table("tip").to_dataframe()
    assert frame.attrs["units"]["tip.x.acceleration"] == "m/s²"
    assert np.array_equal(frame["tip.y.rate"], motion.of("tip").qd[:, 1])
    frame = motion.table(["tip.x", "efforts", "joint forces"]).to_dataframe()
    assert frame.attrs["units"]["elbow.effort"] == "N m"
    assert np.array_equal(frame["elbow.effort"], motion.joint_forces().effort[:, 1])
    assert np.array_equal(frame["shoulder.fy"], motion.joint_forces()["shoulder"].force[:, 1])
    np.testing.assert_allclose(motion.table("efforts").to_dataframe(), motion.effort(), rtol=1e-12)
    run = ARM.simulate(0.2, near=ARM.at([0.0, 0.0]))
    frame = run.table().to_dataframe()
    assert frame.index.name == "t"
    assert np.array_equal(frame["elbow.rate"], run.qd[:, 1])
    run.table().to_csv(tmp_path / "run.csv")
    head, rows = read(tmp_path / "run.csv")
    assert head[:3] == ["t (s)", "shoulder (rad)", "elbow (rad)"]
    assert float(rows[-1][1]) == run.q[-1, 0]
    assert float(rows[-1][0]) == run.t[-1]


def test_energies():
    c = ARM.at([0.3, 0.4])
    # the gradient of the potential energy is minus the load of gravity
    h = 1e-6
    potential = lambda e: ARM.at(c.value(c.coordinates) + h * e).potential_energy()  # noqa: E731
    gradient = [(potential(e) - potential(-e)) / (2 * h) for e in np.eye(2)]
    assert np.abs(gradient + c.dynamics().load).max() < 1e-8


def test_tables_can_be_pickled_and_printed(recwarn) -> None:
    """Also with units by label, and with columns that have no range."""
    c = ARM.at([[0.0, 0.5], [0.2, 1.0]])
    for table in (c.coefficients("tip").table(), c.dynamics().table(), c.joint_forces().table(), c.table()):
        again = pickle.loads(pickle.dumps(table))
        assert again.columns == table.columns
        assert again.to_dataframe().attrs["units"] == table.to_dataframe().attrs["units"]
    values = {"flag": np.array([True, False]), "text": np.array(["a", "b"]), "none": np.full(2, np.nan)}
    values |= {"far": np.array([np.inf, -np.inf]), "some": np.array([np.inf, 2.0]), "z": np.array([1j, 2.0])}
    table = DataTable("t", (TableAxis("k", range(2)),), tuple(Variable(n, x) for n, x in values.items()))
    text = table.summary().text()
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")][-6:] == list(values)
    assert "some         2" in text
    assert not recwarn.list
    motion = kic.trajectory.at_speed(ARM.path({"shoulder": [0.0, 0.1], "elbow": 0.5}), [1.0, 0.0])
    for result in (c, c.dynamics(), motion):
        with pytest.raises(AttributeError, match=r"Use table\(of\)\.to_csv\(path\)"):
            result.to_csv("x.csv")
