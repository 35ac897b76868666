"""Effects of tolerances and clearances on results."""
