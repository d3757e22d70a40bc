"""Read TfIdfVectorizer: counts of known n-grams in lists of integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor
from microtir.operators.common import onnx_ml, onnx_operands, onnx_parts, onnx_types
from microtir.operators.common.onnx_arithmetic import add, both, choose, equal, greater, mul
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.reduction.definition import Sum

_MODES = ("TF", "IDF", "TFIDF")


def tfidf_vectorizer(node: onnx_operands.OnnxNode) -> Tensor:
    """Read TfIdfVectorizer: how often each n-gram of a pool occurs, with gaps of some lengths."""
    onnx_ml.refuse_strings(node, "pool_strings")
    words = node.input(0)
    if len(words.shape) not in (1, 2) or words.dtype not in (DType.INT32, DType.INT64):
        raise node.malformed(
            f"{words.dtype.value} of the shape {words.shape}", "int32 or int64, (C) or (N, C)"
        )
    pools = _pools(node)
    x = onnx_parts.reshaped(node, words, *(1, *words.shape)[-2:])
    if not all(_fits_32_bits(pool) for pool in pools):
        x = onnx_types.cast(node, x, DType.INT64)
    shortest, longest = node.integer("min_gram_length"), node.integer("max_gram_length")
    gaps = node.integer("max_skip_count")
    if not 1 <= shortest <= longest or gaps < 0:
        raise node.malformed(f"n-grams of {shortest} to {longest}, skips up to {gaps}")
    counts = []
    for size, pool in enumerate(pools, 1):
        if len(pool):
            is_counted = shortest <= size <= longest
            # A single number has no gaps: it is counted once.
            steps = range(1, (1 if size == 1 else gaps + 1) + 1) if is_counted else ()
            counts.append(_counts(node, x, pool, steps))
    if not counts:
        raise node.malformed("its pool is empty", "one n-gram or more")
    weights = _weighted(node, _in_columns(node, onnx_parts.joined(node, counts, 1)))
    return onnx_parts.reshaped(node, weights, *words.shape[:-1], weights.shape[1])


def _fits_32_bits(pool: Array) -> bool:
    least, most = pool.min(initial=0), pool.max(initial=0)
    return bool(DType.INT32.min <= least and most <= DType.INT32.max)


def _pools(node: onnx_operands.OnnxNode) -> list[Array]:
    """Return the n-grams by their length, from 1 on: arrays (n-grams, length)."""
    starts = node.list_of_integers("ngram_counts")
    pool = np.array(node.list_of_integers("pool_int64s", ()), np.int64)
    pools = []
    for size, (begin, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        if not 0 <= begin <= end <= len(pool) or (end - begin) % size:
            raise node.malformed(
                f"n-grams of {size} lie at {begin} to {end} in a pool of {len(pool)}",
                "rising places, and whole n-grams",
            )
        pools.append(pool[begin:end].reshape(-1, size))
    return pools


def _counts(node: onnx_operands.OnnxNode, x: Tensor, pool: Array, steps: Sequence[int]) -> Tensor:
    """Return how often each n-gram of one length is in each row: (N, n-grams)."""
    size = pool.shape[1]
    total: Tensor | None = None
    for step in steps:
        places = x.shape[1] - (size - 1) * step
        if places < 1:
            break
        is_there: Tensor | None = None
        for part in range(size):
            seen = onnx_parts.along(node, x, 1, part * step, places)
            wanted = node.constant(pool[:, part].astype(x.dtype.value))
            fits = equal(node, onnx_parts.reshaped(node, seen, x.shape[0], places, 1), wanted)
            is_there = fits if is_there is None else both(node, is_there, fits)
        assert is_there is not None
        count = node.emit(Sum((1,)), onnx_types.cast(node, is_there, DType.FLOAT32))
        total = count if total is None else add(node, total, count)
    if total is None:
        return onnx_parts.filled(node, (x.shape[0], len(pool)), 0)
    return total


def _in_columns(node: onnx_operands.OnnxNode, counts: Tensor) -> Tensor:
    """Return counts of n-grams in the columns that the file gives them; of one column the sum."""
    columns = np.array(node.list_of_integers("ngram_indexes"))
    if len(columns) != counts.shape[1] or columns.min(initial=0) < 0:
        raise node.malformed(
            f"{len(columns)} columns for {counts.shape[1]} n-grams", "one for each, 0 or more"
        )
    if columns.max() >= 1 << 16:
        raise node.malformed(f"column {columns.max()}", f"at most {(1 << 16) - 1}")
    if np.array_equal(columns, np.arange(len(columns))):
        return counts
    takes = np.zeros((columns.max() + 1, len(columns)), np.float32)
    takes[columns, np.arange(len(columns))] = 1
    shape = (counts.shape[0], len(takes))
    return node.emit(FullyConnected(), counts, node.constant(takes), shape=shape)


def _weighted(node: onnx_operands.OnnxNode, counts: Tensor) -> Tensor:
    """Return the counts, the weights of what occurs, or products of both."""
    mode, weights = node.word("mode"), onnx_ml.floats(node, "weights")
    if mode not in _MODES:
        raise node.malformed(f"the mode {mode!r}", ", ".join(_MODES))
    if mode == "TF":
        return counts
    if weights.size not in (0, counts.shape[1]):
        raise node.unsupported(
            f"{weights.size} weights for {counts.shape[1]} columns", "one for each column",
            "export with a separate column for each n-gram",
        )  # fmt: skip
    columns = node.list_of_integers("ngram_indexes")
    if weights.size and columns != tuple(range(len(columns))):
        raise node.unsupported(
            "weights of n-grams whose columns are not in the order of the pool",
            "n-grams in the order of their columns", "export with ngram_indexes in rising order",
        )  # fmt: skip
    values = node.constant(weights if weights.size else np.ones(counts.shape[1], np.float32))
    if mode == "TFIDF":
        return mul(node, counts, values)
    spread = mul(node, values, onnx_parts.filled(node, counts.shape, 1))
    return choose(node, greater(node, counts, 0.0), spread, mul(node, spread, 0.0))


NGRAM_READERS = (
    onnx_operands.OnnxReader(
        "TfIdfVectorizer",
        tfidf_vectorizer,
        attributes=(
            "max_gram_length", "max_skip_count", "min_gram_length", "mode", "ngram_counts",
            "ngram_indexes", "pool_int64s", "pool_strings", "weights",
        ),
    ),
)  # fmt: skip
