"""Define in numpy what operators compute that are given indices while the model runs."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import part_from
from microtir.operators.indexing import definition as indexing


def gather(op: indexing.Gather, node: Node, x: Array, indices: Array) -> Array:
    """Compute GATHER, for each combination of the common axes by itself."""
    nearest = np.clip(indices, 0, x.shape[op.axis] - 1)
    common = x.shape[: op.batch_dims]
    parts = [np.take(x[at], nearest[at], axis=op.axis - op.batch_dims) for at in np.ndindex(common)]
    return np.stack(parts).reshape(node.output.shape)


def gather_nd(_op: indexing.GatherNd, node: Node, x: Array, indices: Array) -> Array:
    """Compute GATHER_ND."""
    depth = indices.shape[-1]
    nearest = np.clip(indices, 0, np.array(x.shape[:depth]) - 1)
    return np.asarray(x[tuple(np.moveaxis(nearest, -1, 0))]).reshape(node.output.shape)


def scatter_nd(op: indexing.ScatterNd, _node: Node, updates: Array, places: Array) -> Array:
    """Compute SCATTER_ND: in the order of the updates; integers that are added up wrap."""
    depth = places.shape[-1]
    result = np.zeros(op.shape, updates.dtype)
    places, parts = places.reshape(-1, depth), updates.reshape(-1, *op.shape[depth:])
    is_inside = ((places >= 0) & (places < op.shape[:depth])).all(axis=1)
    inside = tuple(places[is_inside].T)
    if op.keeps_last:
        result[inside] = parts[is_inside]
    else:
        np.add.at(result, inside, parts[is_inside])
    return result


def true_places(_op: indexing.TruePlaces, _node: Node, x: Array) -> tuple[Array, Array]:
    """Find the places of what is true."""
    places, indices = np.zeros(x.size, np.int32), np.flatnonzero(x)
    places[: indices.size] = indices
    return places, np.array([indices.size], np.int32)


def embedding_lookup(
    _op: indexing.EmbeddingLookup, node: Node, rows: Array, indices: Array
) -> Array:
    """Compute EMBEDDING_LOOKUP."""
    chosen = rows[np.clip(indices, 0, rows.shape[0] - 1)]
    if node.inputs[0].dtype is node.output.dtype:
        return np.asarray(chosen)
    return np.asarray(chosen.astype(np.float32) * np.float32(node.inputs[0].type.quant.scale))


def dynamic_update_slice(
    _op: indexing.DynamicUpdateSlice | indexing.PutSlice,
    _node: Node,
    x: Array,
    update: Array,
    begin: Array,
) -> Array:
    """Compute DYNAMIC_UPDATE_SLICE, also of a state."""
    result = np.array(x)
    result[part_from(x, update.shape, begin)] = update
    return result
