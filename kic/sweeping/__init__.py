"""Sweeps: any scalar over a grid of inputs or of the task space, on one machine or on many."""
