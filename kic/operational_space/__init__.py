"""operational_space."""
