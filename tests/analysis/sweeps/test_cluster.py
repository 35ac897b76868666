"""Dask: sweeps on a cluster of two worker processes, and evaluators, give the same results as here."""

from __future__ import annotations

import numpy as np
import pytest

import kic


@pytest.mark.parametrize("name", ["gough-stewart", "panda"])
def test_evaluators_are_mapped_over_dask_arrays(name: str) -> None:
    """Names of tasks come from `__name__`; the names of these models have hyphens, or none."""
    da = pytest.importorskip("dask.array", reason="needs Dask: pip install -e '.[cluster]'")
    m = kic.load(name)
    f, n = m.prepare.inverse_dynamics(), len(m.coordinates)
    state, rates = np.repeat(m.at().state[None], 8, axis=0), np.linspace(0.1, 0.2, 8 * n).reshape(8, n)
    parts = [da.from_array(a, chunks=(4, -1)) for a in (state, rates, rates)]
    made = [
        da.map_blocks(f, *parts, chunks=parts[1].chunks, dtype=float),
        da.apply_gufunc(f, "(s),(q),(q)->(q)", *parts, output_dtypes=float),
    ]
    xr = pytest.importorskip("xarray")
    blocks = [xr.DataArray(a, dims=("n", core)) for a, core in zip(parts, "sqq", strict=True)]
    core = {"input_core_dims": [["s"], ["q"], ["q"]], "output_core_dims": [["q"]]}
    made.append(xr.apply_ufunc(f, *blocks, **core, dask="parallelized", output_dtypes=[float]).data)
    for one in made:
        assert np.array_equal(one.compute(scheduler="sync"), f(state, rates, rates))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_cluster_gives_the_same_sweep() -> None:
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install -e '.[cluster]'")
    m = kic.load("five-bar")
    grid = {"tip.x": np.linspace(-12, 46, 30), "tip.y": np.linspace(-45, 37, 42)}
    asked = [
        kic.metrics.transmission(),
        kic.metrics.inverse_condition_number("tip.x", "tip.y"),
        "static_effort",
    ]
    here = m.sweep(grid, asked)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = m.sweep(grid, asked, executor=client.get_executor(), chunk=100)
        reach = m.sweep(grid, {"x": lambda c: c.value("tip.x")}, executor=client.get_executor())
        pids = client.run(__import__("os").getpid)
    assert len(set(pids.values())) == 2
    assert (there.reached == here.reached).all()
    assert (there.reasons == here.reasons).all()
    assert np.array_equal(reach["x"], here.configuration.value("tip.x"), equal_nan=True)
    for name in here.values:
        np.testing.assert_allclose(there[name], here[name], rtol=1e-12, atol=1e-12)
