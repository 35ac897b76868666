"""User interfaces: commands, reports and the viewer."""
