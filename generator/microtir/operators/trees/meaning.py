"""Define in numpy what trees give."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.trees.definition import Aggregate, TreeEnsemble

_START = {Aggregate.SUM: 0.0, Aggregate.MIN: np.inf, Aggregate.MAX: -np.inf}


def tree_ensemble(
    op: TreeEnsemble,
    _node: Node,
    x: Array,
    features: Array,
    thresholds: Array,
    following: Array,
    roots: Array,
    weights: Array,
    *more: Array,
) -> Array:
    """Walk down each tree for each row, and join what the leaves give."""
    targets = more[0] if more else np.tile(np.arange(op.targets), (len(weights), 1))
    tracks = more[1] if len(more) > 1 else np.zeros(len(features), np.int32)
    result = np.full((len(x), op.targets), _START[op.aggregate], weights.dtype)
    for row, values in enumerate(x):
        for root in roots:
            at = int(root)
            while features[at] >= 0:
                value = values[features[at]]
                is_first = value <= thresholds[at] or (tracks[at] and _is_missing(value))
                at = int(following[at, 0 if is_first else 1])
            leaf = int(following[at, 0])
            for target, weight in zip(targets[leaf], weights[leaf], strict=True):
                if target >= 0:
                    result[row, target] = _JOIN[op.aggregate](result[row, target], weight)
    return result


def _is_missing(value: np.number[Any]) -> bool:
    """Return whether a feature is no number; of integers the largest one stands for that."""
    if isinstance(value, np.floating):
        return bool(np.isnan(value))
    return int(value) == np.iinfo(value.dtype).max


_JOIN = {Aggregate.SUM: np.add, Aggregate.MIN: np.minimum, Aggregate.MAX: np.maximum}
