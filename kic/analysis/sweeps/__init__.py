"""Sweeps: metrics of a mechanism over a grid of inputs or task coordinates.

`grid` makes the grid, `grid_continuation` closes its cells one from another, `problem` evaluates the metrics
on `executor`, and `result` holds the values and plots them.
"""
