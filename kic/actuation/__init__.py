"""actuation."""
