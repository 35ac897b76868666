"""Simulation: motion in time under efforts, voltages and prescribed motions.

Read `options` (what a user sets), `coordinates` (equations of motion in one set of coordinates),
`integration` (steps, switching of coordinates, events), `change_points` (passage through change points),
`sampling` (sampled controllers) and `result` in this order.
"""
