"""Files: model files (TOML), Denavit-Hartenberg rows, shipped models, and atomic writing."""
