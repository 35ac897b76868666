"""Drawings, animations, plots and maps, made with Matplotlib."""
