"""Position analysis: assembly modes, input sets and singular configurations."""
