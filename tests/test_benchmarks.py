"""Every job of the benchmarks runs, without times; simulations against Exudyn and MuJoCo, if installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kic

sys.path.insert(0, str(Path(__file__).parent))
from benchmarks import (
    exported,
    exudyn_peer,
    jobs,
    loops,
    mujoco_peer,
    nine_points,
    rows,
    run,
    starts,
    swings,
    timing,
    versions,
)
from benchmarks.ladder import ladder
from benchmarks.peers import DisagreementError

needs_exudyn = pytest.mark.skipif(
    exudyn_peer.exudyn is None, reason="pip install -e '.[bench]' to compare with Exudyn"
)


@needs_exudyn
@pytest.mark.parametrize("case", swings.CASES, ids=lambda case: case.point)
def test_exudyn_has_the_same_initial_conditions(case: swings.Case) -> None:
    m, qd = case.make(), np.array(case.qd)
    exudyn_peer.check_acceleration(exudyn_peer.ExudynPeer(m, qd, case.point))
    peer = exudyn_peer.ExudynPeer(m, qd, case.point)
    peer.mechanism = replace(m, gravity=(0.1, *m.gravity[1:]))
    with pytest.raises(DisagreementError):
        exudyn_peer.check_acceleration(peer)


@needs_exudyn
def test_exudyn_converges_to_the_same_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of the four-bar: order two, and the predicted steps give the wanted error."""
    monkeypatch.setattr(swings, "TIMES", np.linspace(0, 1, 11))
    swing = swings.Swing(swings.CASES[0])
    peer = swings.PeerSwing(swing, 250)
    assert 1.9 < peer.order < 2.1
    wanted = peer.error / 10
    assert 0.5 < swing.error(peer.run(peer.steps(wanted))) / wanted < 2
    swing.reference = swing.reference + 1e-3
    with pytest.raises(DisagreementError, match="limit of 'four-bar"):
        swings.PeerSwing(swing, 250)


@pytest.mark.skipif(mujoco_peer.mujoco is None, reason="pip install -e '.[bench]' to compare with MuJoCo")
@pytest.mark.parametrize("case", swings.CASES, ids=lambda case: case.point)
def test_mujoco_converges_to_the_same_solution(case: swings.Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swings, "TIMES", np.linspace(0, 1, 11))
    swing = swings.Swing(case)
    peers = [mujoco_peer.MujocoPeer(swing.mechanism, swing.qd, case.point, step) for step in (4e-3, 1e-3)]
    coarse, fine = (swing.error(peer.run(swings.TIMES)) for peer in peers)
    assert 1e-8 < fine < min(coarse / 8, 1e-5)


@pytest.mark.slow
def test_platform_keeps_its_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays in reach of its legs, keeps its energy and matches the reference."""
    monkeypatch.setattr(swings, "TIMES", np.linspace(0, 2, 21))
    swing = swings.Swing(swings.CASES[1])
    run = swing.run()
    assert np.abs(run.q - run.q[0]).max() < 0.15
    assert swing.error(run["eye"]) < 1e-7
    assert np.abs(run.energy.residual).max() < 1e-5 * np.ptp(run.energy.potential)
    loosest = swing.no_worse(1e-4)
    assert swing.error(swing.run(loosest)["eye"]) <= 1e-4 < swing.error(swing.run(100 * loosest)["eye"])


@pytest.mark.slow
@pytest.mark.parametrize("part", run.PARTS)
def test_every_part_of_the_table_runs(part: str, monkeypatch, tmp_path: Path, capsys) -> None:
    """Each job runs once, in small batches, beside the peers that are installed."""
    monkeypatch.setattr(timing, "BATCH", 8)
    monkeypatch.setattr(timing, "PEER_BATCH", 4)
    for name, few in (("CLOSED_BATCH", 8), ("WINDOWS", (1, 2)), ("FITTED", ((1, 2),))):
        monkeypatch.setattr(loops, name, few)
    for name, few in (("CURVE", (3, 6, 12)), ("CURVE_BATCH", 8)):
        monkeypatch.setattr(run, name, few)
    monkeypatch.setattr(swings, "TIMES", np.linspace(0, 1, 11))
    monkeypatch.setattr(swings, "COARSE", 250)
    monkeypatch.setattr(swings, "CASES", [replace(c, tolerances=c.tolerances[:1]) for c in swings.CASES])
    monkeypatch.setattr(swings, "MOST", 1000)
    monkeypatch.setattr(starts, "MODELS", ["four-bar"])
    # compiled kernels are at hand
    monkeypatch.setattr(starts, "_environment", lambda cache: dict(os.environ))
    run.main(["--once", "--only", part, "--output", str(tmp_path / "table.md")])
    lines = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("|")]
    assert len(lines) >= 4
    assert "nan" not in "".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("subject", jobs.SUBJECTS)
def test_every_job_runs(subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "BATCH", 8)
    make, names = jobs.SUBJECTS[subject]
    made = make()
    assert {name for name in names if name not in jobs.PEERS} <= made.keys()
    for work in made.values():
        work()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_exported_code_is_timed(monkeypatch, capsys) -> None:
    for name, few in (("CASES", exported.CASES[:2]), ("ROUNDS", 1), ("MEMBERS", 8)):
        monkeypatch.setattr(exported, name, few)
    exported.main()
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("name", rows.MECHANISMS)
def test_every_row_of_the_ladder_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is called once, in small batches."""
    make, of, *_ = rows.MECHANISMS[name]
    monkeypatch.setitem(rows.MECHANISMS, name, (make, of, 4, 2))
    names = [row for row in rows.ROWS if row.startswith(f"{name}, ")]
    assert names
    assert all(rows.seconds_of(row, 0.0) > 0 for row in names)


def test_ladder_marks_rows_that_are_slower_beyond_their_scatter() -> None:
    theirs = np.linspace(1.0, 2.0, 20)  # the machine's speed changes, the ratios do not
    noise = np.resize([-0.1, 0.1], 20)
    marked = [
        versions.compared(list(ratio * theirs), list(theirs))[2]
        for ratio in (1.0, 1.04, 1.06, 1.06 + noise, 1.2 + noise, 0.5)
    ]
    assert marked == [False, False, True, False, True, False]
    assert versions.cells("", [None], [1.0])[-1] == "lost"
    assert not versions.cells("", [1.0], [None])[-1]


def test_three_windows_are_the_shipped_model() -> None:
    made, shipped = ladder(3), kic.load("ladder")
    assert [j.name for j in made.joints] == [j.name for j in shipped.joints]
    assert [j.bodies for j in made.joints] == [j.bodies for j in shipped.joints]
    for kind, keys in (
        ("bodies", ("mass", "com", "inertia")),
        ("joints", ("at", "value")),
        ("points", ("at",)),
    ):
        for part in getattr(shipped, kind):
            other = made[part.name]
            for key in keys:
                # inertias are printed to eight digits
                assert np.allclose(getattr(other, key), getattr(part, key), rtol=1e-7, atol=1e-12), part.name
    turned = {"D0": shipped.at().value("D0") + 0.1}
    ours, theirs = (m.at(turned).dynamics() for m in (made, shipped))
    for letter in ("I", "P", "load"):
        assert np.allclose(getattr(ours, letter), getattr(theirs, letter), rtol=1e-6, atol=1e-9), letter


@pytest.mark.parametrize("windows", [1, 5, 12])
def test_windows_close_with_one_dof(windows: int) -> None:
    m = ladder(windows)
    assert (m.dof, len(m.mobility().cuts)) == (1, windows)
    c = m.at({"D0": m.at().value("D0") + 0.05})
    for k in range(1, windows + 1):
        tops = [c.pose(name).apply(m[f"B{k}"].at) for name in (f"coupler{k}", f"rocker{k}")]
        assert np.abs(tops[0] - tops[1]).max() < 1e-12


@pytest.mark.slow
def test_optimal_motions_agree() -> None:
    """Exported derivatives, those of CasADi and closure equations lead to one motion of the five-bar."""
    pytest.importorskip("casadi", reason="needs CasADi: pip install -e '.[casadi]'")
    from benchmarks import optimal_motions

    found = [
        optimal_motions.solve("five-bar", road) for road in ("derivatives=2", "chords", "closure equations")
    ]
    assert {status for *_, status in found} == {"Solve_Succeeded"}
    costs = [cost for _, _, cost, _ in found]
    assert np.ptp(costs) <= 1e-6 * costs[0]  # the tolerance of IPOPT is 1e-8, and its scaling unknown
    assert found[0][0] <= found[2][0]  # iterations with the exact Hessian of fewer variables


def test_cognates_have_the_coupler_curve() -> None:
    """Six four-bars pass through nine points; small changes of one miss them."""
    m, points = nine_points.path_problem()
    known = nine_points.linkages(m, m.at().state[None].astype(complex))
    both = np.stack([points, points.conj()], axis=1)
    six = np.concatenate([known, *nine_points.relatives(known)])
    assert nine_points.path_residuals(six, both).max() < 1e-12
    assert nine_points.path_residuals(known + 1e-4, both)[0] > 1e-6
    assert nine_points.classes(six) == (1, 1)
    assert nine_points.classes(six[:5]) == (1, 0)
    assert len({tuple(x) for x in six.reshape(6, -1).round(6)}) == 6


@pytest.mark.slow
def test_five_points_with_given_pivots() -> None:
    """There are 36 four-bars: A. P. Morgan, C. W. Wampler, Journal of Mechanical Design 112, 1990."""
    m, points = nine_points.path_problem(5)
    modes = m.assembly_modes(
        nine_points.values_of(points, pivots=True), complete=True, starts=1, rng=np.random.default_rng(1)
    )
    known = modes.completeness
    assert (known.generic, known.finite, known.lost) == (36, 36, 0)
    states = modes.configuration.state
    both = np.stack([points, points.conj()], axis=1)
    assert nine_points.path_residuals(nine_points.linkages(m, states), both).max() < 1e-9
    assert 0 < known.real == len(states) <= 36


def test_commits_are_checked_out_to_a_folder_that_is_removed(tmp_path: Path) -> None:
    user = ("-c", "user.name=x", "-c", "user.email=x@x")
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    (tmp_path / "file").write_text("first")
    subprocess.run([*git, "add", "file"], check=True)
    subprocess.run([*git, *user, "commit", "--quiet", "--message", "first"], check=True)
    (tmp_path / "file").write_text("second")
    with suppress(ZeroDivisionError), versions.checkout("HEAD", tmp_path) as tree:
        assert (tree / "file").read_text() == "first"
        raise ZeroDivisionError
    assert not tree.exists()
    assert subprocess.check_output([*git, "worktree", "list"]).count(b"\n") == 1
    with pytest.raises(SystemExit):
        versions.checkout("no-commit", tmp_path).__enter__()
