"""Define in numpy what attention over a cache and rotary positions compute."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.attention.definition import (
    CachedAttention,
    RotaryPositions,
    attention_extents,
    rotary_extents,
)
from microtir.operators.common.arrays import as_output


def rotary_positions(
    op: RotaryPositions, node: Node, x: Array, cosines: Array, sines: Array, positions: Array
) -> Array:
    """Turn pairs in double."""
    rows, heads, elements, angles, places = rotary_extents(node)
    at = positions.reshape(rows).clip(0, places - 1)
    cos, sin = (table.astype(np.float64)[at][:, None, :] for table in (cosines, sines))
    result = x.astype(np.float64).reshape(rows, heads, elements)
    halves = slice(0, angles), slice(angles, 2 * angles)
    pairs = slice(0, 2 * angles, 2), slice(1, 2 * angles, 2)
    first, second = pairs if op.interleaved else halves
    a, b = result[..., first].copy(), result[..., second].copy()
    result[..., first], result[..., second] = a * cos - b * sin, a * sin + b * cos
    return as_output(result.reshape(x.shape), node.output.type)


def cached_attention(
    op: CachedAttention,
    node: Node,
    queries: Array,
    keys: Array,
    values: Array,
    last: Array,
    *scales: Array,
) -> Array:
    """Weigh values in double, token by token."""
    tokens, heads, groups, length, depth, _ = attention_extents(node)
    q = queries.astype(np.float64).reshape(tokens, heads, depth)
    factors = [table[0] for table in scales] or [np.ones(1)] * 2
    k, v = (
        np.repeat(stored[0].astype(np.float64) * scale, heads // groups, axis=0)
        for stored, scale in zip((keys, values), factors, strict=True)
    )
    end = int(last.reshape(()).clip(-1, length - 1))
    results = []
    for token in range(tokens):
        place = end if tokens == 1 else max(end - tokens + 1, 0) + token
        first = max(place - op.window + 1, 0) if op.window else 0
        seen = slice(first, (place if op.is_causal else end) + 1)
        scores = op.scale * np.einsum("hd,htd->ht", q[token], k[:, seen])
        if op.softcap:
            scores = op.softcap * np.tanh(scores / op.softcap)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1)
        results.append(np.einsum("ht,htv->hv", weights, v[:, seen]))
    return as_output(np.array(results).reshape(node.output.shape), node.output.type)
