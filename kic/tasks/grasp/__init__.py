"""Grasps: contacts, force closure, grip forces and manipulation of objects by several fingers."""
