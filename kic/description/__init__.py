"""Description of mechanisms: immutable parts with validation and units, without any motion."""
