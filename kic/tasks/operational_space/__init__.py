"""Operational-space dynamics, ellipsoids, and resolution of redundancy."""
