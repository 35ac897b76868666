"""What people see: drawings, animations, plots over time, maps; all by Matplotlib, an extra."""
