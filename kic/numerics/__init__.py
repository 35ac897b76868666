"""Numerical tools without mechanics: arrays, rotations, linear algebra, polynomials and programs."""
