"""Compiled arithmetic on plain arrays, the only index loops of the package; no names, files or errors."""
