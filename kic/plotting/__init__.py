"""plotting."""
