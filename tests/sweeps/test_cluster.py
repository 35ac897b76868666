"""Sweeps on a Dask cluster of two worker processes give the same results as in this process."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises

import kic


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
        with raises(kic.InputError, key="of"):
            m.sweep(grid, lambda c: c.value("tip.x"), executor=client.get_executor())
        pids = client.run(__import__("os").getpid)
    assert len(set(pids.values())) == 2
    assert (there.reached == here.reached).all()
    assert (there.reasons == here.reasons).all()
    for name in here.values:
        np.testing.assert_allclose(there[name], here[name], rtol=1e-12, atol=1e-12)
