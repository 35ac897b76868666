"""joint_forces."""
