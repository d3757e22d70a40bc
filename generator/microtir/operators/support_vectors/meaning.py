"""Define in numpy what support vector machines need besides products and sums."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import as_output
from microtir.operators.support_vectors.definition import (
    MOST_TURNS,
    TOLERANCE,
    PairwiseCoupling,
    SquaredDistances,
)

Doubles = npt.NDArray[np.float64]


def squared_distances(_op: SquaredDistances, node: Node, x: Array, vectors: Array) -> Array:
    """Sum squared differences in double, row by row."""
    wide = vectors.astype(np.float64)
    rows = [np.square(row - wide).sum(axis=1) for row in x.astype(np.float64)]
    return as_output(np.array(rows).reshape(node.output.shape), node.output.type)


def pairwise_coupling(op: PairwiseCoupling, node: Node, pairs: Array) -> Array:
    """Couple the probabilities of each row in double."""
    rows = [_coupled(row.astype(np.float64), op.classes) for row in pairs]
    return as_output(np.array(rows).reshape(node.output.shape), node.output.type)


def _coupled(pairs: Doubles, classes: int) -> Doubles:
    """Minimise p'Qp over probabilities p, one element of p after the other."""
    upper = np.triu_indices(classes, 1)
    share = np.zeros((classes, classes))
    share[upper], share[upper[::-1]] = pairs, 1 - pairs
    q = -share * share.T
    np.fill_diagonal(q, np.square(share).sum(axis=0))
    p = np.full(classes, 1 / classes)
    for _ in range(MOST_TURNS):
        product = q @ p
        value = p @ product
        if np.abs(product - value).max() < TOLERANCE / classes:
            break
        for t in range(classes):
            step = (value - product[t]) / q[t, t]
            scale = 1 + step
            value = (value + step * (step * q[t, t] + 2 * product[t])) / scale / scale
            product = (product + step * q[t]) / scale
            p[t] += step
            p = p / scale
    return p
