"""Position analysis: assembly modes and singular configurations."""
