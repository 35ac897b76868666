"""Motion in time: charts, integrators, runs and their results, controllers."""
