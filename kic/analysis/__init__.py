"""Mobility, assembly modes, input sets, singular configurations and design sensitivities."""
