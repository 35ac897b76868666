"""Compiled arithmetic on plain arrays: the only index loops of the package. No names, files or errors."""
