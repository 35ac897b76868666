"""States of a tree: conversion from and to coordinates, integration, differences and distances."""

from __future__ import annotations

import numpy as np

from kic.description.description import MechanismDescription
from kic.kinematics.tree import Tree
from kic.numerics.rotations import (
    product,
    quaternion_from_vector,
    vector_from_quaternion,
)


def reference_coordinates(description: MechanismDescription) -> np.ndarray:
    """Return the coordinates (M,) of the reference configuration."""
    return np.array([description._reference_values[name] for name in description.coordinates])


def states_of(tree: Tree, phi: np.ndarray) -> np.ndarray:
    """Return the states (B, S) of coordinates (B, M) in the order of the mechanism."""
    if phi.dtype == np.float64 and tree.scalar != phi.dtype:
        phi = phi.astype(tree.scalar)
    if tree.to_coordinates is not None:
        columns = np.empty_like(phi)
        columns[:, tree.to_coordinates] = phi
        phi = columns
    return tree.states(phi)


def phi_of(tree: Tree, states: np.ndarray) -> np.ndarray:
    """Return a copy of the coordinates (B, M) of states (B, S), in the order of the mechanism."""
    if tree.balls:
        phi = np.empty((len(states), tree.size), states.dtype)
        columns, entries = tree.single_columns
        phi[:, columns] = states[:, entries]
        for turn, quaternion in tree.ball_slices:
            phi[:, turn] = vector_from_quaternion(states[:, quaternion])
    else:
        phi = states.copy()
    return phi if tree.to_coordinates is None else phi[:, tree.to_coordinates]


def integrate(tree: Tree, states: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return states (B, S) moved by steps (B, M) of the tree's coordinates."""
    if not tree.balls:
        return states + step
    moved = states.copy()
    columns, entries = tree.single_columns
    moved[:, entries] += step[:, columns]
    for turn, quaternion in tree.ball_slices:
        # the step is about axes of the first body, and therefore multiplies from the left
        q = product(quaternion_from_vector(step[:, turn]), states[:, quaternion])
        moved[:, quaternion] = q / np.sqrt(np.einsum("bi,bi->b", q, q))[:, None]
    return moved


def difference(tree: Tree, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the steps (B, M) by which `integrate` moves states a to states b (B, S)."""
    steps = np.zeros((len(a), tree.size), np.result_type(a, b))
    columns, entries = tree.single_columns
    steps[:, columns] = b[:, entries] - a[:, entries]
    for turn, quaternion in tree.ball_slices:
        inverse = a[:, quaternion] * [1, -1, -1, -1]
        steps[:, turn] = vector_from_quaternion(product(b[:, quaternion], inverse))
    return steps


def distance(tree: Tree, a: np.ndarray, b: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return distances (B, M) of states (B, S): angles, translations over `scale`, one angle per ball."""
    gap = np.zeros((len(a), tree.size))
    columns, entries = tree.single_columns
    gap[:, columns] = np.abs(a[:, entries] - b[:, entries]) / scale[columns]
    for turn, quaternion in tree.ball_slices:
        p, q = a[:, quaternion], b[:, quaternion]
        # both signs are one rotation; the chord between unit quaternions subtends half the angle
        chord = np.minimum(np.linalg.norm(p - q, axis=1), np.linalg.norm(p + q, axis=1))
        gap[:, turn.start] = 4 * np.arcsin(np.minimum(chord / 2, 1.0))
    return gap
