"""Analysis of a mechanism: positions, joint forces, small motions, sweeps and sensitivities."""
