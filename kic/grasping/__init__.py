"""Hands and feet: grasp maps, motion of what is held, force closure, grip forces within friction."""
