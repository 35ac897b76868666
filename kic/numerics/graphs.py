"""Connected components of graphs, and blocks of sparse matrices."""

from __future__ import annotations

import numpy as np


def components(links: list[tuple[int, int]], count: int, *, strong: bool = False) -> np.ndarray:
    """Return component numbers (count,) of the nodes of a graph with links (a, b); that of node 0 is 0.

    If `strong` is True, links have a direction, and the components are strongly connected.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    a, b = np.array(links, dtype=np.intp).reshape(-1, 2).T
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(count, count))
    found: np.ndarray = connected_components(graph, connection="strong" if strong else "weak")[1]
    return np.where(found == found[0], 0, np.where(found == 0, found[0], found)) if count else found


def blocks(pattern: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the rows and columns of the independent blocks of a matrix with nonzeros in a pattern (P, M).

    Blocks share neither rows nor columns. Rows and columns without entries belong to no block.
    """
    rows, columns = np.nonzero(pattern)
    count = len(pattern)
    group = components(list(zip(rows.tolist(), (count + columns).tolist(), strict=True)), sum(pattern.shape))
    return [
        (np.flatnonzero(group[:count] == k), np.flatnonzero(group[count:] == k))
        for k in np.unique(group[rows])
    ]
