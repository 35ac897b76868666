"""Files: TOML, URDF, SDF and MJCF models, Denavit–Hartenberg rows, shipped models, atomic writing."""
