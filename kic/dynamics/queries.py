"""Queries to the dynamics kernels: I*, P*, loads, and the contribution of each body."""

from __future__ import annotations

from kic.dynamics.mass_and_load_tables import Loads, Masses
from kic.kinematics.linear_map import LinearMap
from kic.kinematics.queries import Layout, Query, dynamics_layout
from kic.kinematics.tree import Tree


def dynamics_query(
    tree: Tree, masses: Masses, loads: Loads, want: int, linear: LinearMap | None = None
) -> Query:
    """Return the query for I* and P*, load and damping, or both, in the tree's or mapped coordinates."""
    size = tree.size if linear is None else linear.size
    entry, asked = "dynamics" if linear is None else "linear_dynamics", (2, 0, size, want)
    layout = dynamics_layout(size, want)
    return Query(tree, entry, layout, masses=masses, loads=loads, asked=asked, linear=linear)


def contributions_query(tree: Tree, masses: Masses, size: int) -> Query:
    """Return the query for the contributions of each body to I* and P* in `size` coordinates.

    The results of each of the N bodies are I linear, I angular, P linear, P angular and the Jacobian of the
    linear momentum, side by side.
    """
    layout = Layout([(size, size), (size, size), (size,) * 3, (size,) * 3, (3, size)])
    return Query(tree, "links", layout, masses=masses, asked=(2, 0, size, 0))
