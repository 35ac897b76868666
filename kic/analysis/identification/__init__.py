"""Parameters and dimensions from measurements."""
