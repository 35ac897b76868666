"""Tasks of redundant mechanisms: operational space, distribution of efforts, and grasps."""
