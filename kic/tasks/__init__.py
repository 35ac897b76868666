"""Fewer rows than freedoms: operational space, ellipsoids, resolution of redundancy, following."""
