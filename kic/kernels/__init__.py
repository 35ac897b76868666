"""Compiled arithmetic on plain arrays: the only index loops of kic. No names, no files, no errors."""
