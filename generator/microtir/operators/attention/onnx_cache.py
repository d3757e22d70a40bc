"""Read attention over a cache with room for all tokens, com.microsoft's and ONNX's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Maximum, Sub
from microtir.operators.attention import definition, onnx_rotary
from microtir.operators.common import onnx_types, onnx_values
from microtir.operators.common.onnx_operands import OnnxNode, by_definition
from microtir.operators.common.onnx_parts import along, int32s, joined, reshaped, transposed
from microtir.operators.common.shapes import Shape
from microtir.operators.indexing.definition import DynamicUpdateSlice

_BOTTOM_RIGHT = 25
"""The operator set since which the last query of a causal attention is that of the last key."""


def attention(node: OnnxNode) -> onnx_values.Value | tuple[onnx_values.Value, ...]:
    """Read Attention: of one token to a cache that others fill, else by its definition.

    By the definition a token costs as much as the cache has room for, whatever is in it.
    """
    filled = node.optional(6)
    if filled is None or not _is_of_one_token(node):
        return by_definition(node)
    query, keys, values = (node.input(index) for index in range(3))
    _, heads, _, depth = query.shape
    last = reshaped(node, onnx_types.cast(node, filled, DType.INT32), 1)
    last = node.emit(Sub(), last, int32s(node, np.array([1])))
    scale = node.number("scale", 1 / math.sqrt(depth))
    op = definition.CachedAttention(heads, scale, node.number("softcap", 0.0))
    flat = reshaped(node, query, 1, 1, heads * depth)
    result = node.emit(op, flat, keys, values, last)
    return reshaped(node, result, 1, heads, 1, values.shape[3])


def _is_of_one_token(node: OnnxNode) -> bool:
    """Return whether a node gives nothing but what one token sees of a cache."""
    operands = [node.optional(index) for index in range(6)]
    if any(tensor is not None for tensor in operands[3:]) or node.outputs > 1:
        return False
    shapes = [tensor.shape for tensor in operands[:3] if tensor is not None]
    if any(len(shape) != 4 or shape[0] != 1 or 0 in shape for shape in shapes):
        return False
    if shapes[0][2] != 1:
        return False
    asks_more = any(
        node.integer(name, -1) != -1 for name in ("left_window_size", "right_window_size")
    )
    is_odd = node.integer("softmax_precision", 1) != 1 or asks_more
    return not is_odd and (not node.integer("is_causal", 0) or node.version >= _BOTTOM_RIGHT)


_GROUPED_INPUTS = {
    10: "attention_bias", 11: "head_sink", 12: "k_scale", 13: "v_scale", 14: "q_norm_weight",
    15: "k_norm_weight", 16: "query_seqlens",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Grouped:
    """Queries, keys and values of new tokens, (1, S, ...), and how they are divided in heads."""

    query: Tensor
    key: Tensor
    value: Tensor
    heads: int
    groups: int

    @property
    def tokens(self) -> int:
        return self.query.shape[1]


def _grouped(node: OnnxNode) -> _Grouped:
    """Return the new tokens; all three may be packed in one input."""
    query, key, value = node.input(0), node.optional(1), node.optional(2)
    heads, groups = node.integer("num_heads"), node.integer("kv_num_heads")
    if min(heads, groups) < 1 or heads % groups:
        raise node.malformed(f"{heads} heads of {groups} groups", "a multiple of the groups")
    if len(query.shape) != 3 or (key is None) != (value is None):
        raise node.malformed(
            f"queries of shape {query.shape}", "3 dimensions, with keys and values"
        )
    if query.shape[0] != 1:
        raise node.unsupported(
            f"it has {query.shape[0]} sequences", "one", "export the model with a batch of 1"
        )
    if key is None or value is None:
        size = query.shape[2] // (heads + 2 * groups)
        cuts = (
            (0, heads * size),
            (heads * size, groups * size),
            ((heads + groups) * size, groups * size),
        )
        query, key, value = (along(node, query, 2, begin, count) for begin, count in cuts)
    depth = query.shape[2] // heads
    expected: Shape = (1, query.shape[1], groups * depth)
    if (
        0 in query.shape
        or depth * heads != query.shape[2]
        or key.shape != expected
        or value.shape != expected
    ):
        raise node.malformed(
            f"{heads} heads of {query.shape}, keys of {key.shape}, values of {value.shape}",
            f"keys and values of {expected}",
        )
    return _Grouped(query, key, value, heads, groups)


def grouped_query_attention(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read com.microsoft's GroupQueryAttention: the new tokens go into a cache, which all see.

    The cache has the room that its input has; where the newest token is in it, an input says.
    """
    _refuse_grouped(node)
    new = _grouped(node)
    last = reshaped(node, onnx_types.cast(node, node.input(5), DType.INT32), 1)
    first = last
    if new.tokens > 1:
        before = int32s(node, np.array([new.tokens - 1]))
        first = node.emit(Sub(), node.emit(Maximum(), last, before), before)
    query, key = new.query, new.key
    if node.integer("do_rotary", 0):
        positions = _grouped_positions(node, first, new.tokens)
        query, key = (
            node.emit(
                definition.RotaryPositions(heads, bool(node.integer("rotary_interleaved", 0))),
                x, node.input(7), node.input(8), positions,
            )
            for x, heads in ((query, new.heads), (key, new.groups))
        )  # fmt: skip
    zero = int32s(node, np.zeros(1))
    begin = joined(node, (zero, zero, first, zero), 0)
    keys = _cached(node, 3, key, new.groups, begin)
    values = _cached(node, 4, new.value, new.groups, begin)
    scale = node.number("scale", 0.0) or 1 / math.sqrt(query.shape[2] // new.heads)
    window = node.integer("local_window_size", -1)
    window = window if 0 < window < keys.shape[2] else 0
    softcap, is_causal = node.number("softcap", 0.0), bool(node.integer("causal", 1))
    op = definition.CachedAttention(new.heads, scale, softcap, window, is_causal)
    return node.emit(op, query, keys, values, last), keys, values


def _grouped_positions(node: OnnxNode, first: Tensor, tokens: int) -> Tensor:
    """Return the positions of the new tokens: those that an input has, or their places."""
    positions = node.optional(9)
    if positions is None:
        return onnx_rotary.following(node, first, tokens)
    return reshaped(node, onnx_types.cast(node, positions, DType.INT32), tokens)


def _cached(node: OnnxNode, index: int, new: Tensor, groups: int, begin: Tensor) -> Tensor:
    """Return a cache with the new tokens in it, or these alone where there is none."""
    tokens, depth = new.shape[1], new.shape[2] // groups
    split = reshaped(node, new, 1, tokens, groups, depth)
    if tokens == 1:
        rows = reshaped(node, split, 1, groups, 1, depth)
    else:
        rows = transposed(node, split, (0, 2, 1, 3))
    past = node.optional(index)
    if past is None:
        return rows
    fits = len(past.shape) == 4 and (past.shape[:2], past.shape[3]) == ((1, groups), depth)
    if not fits or past.shape[2] < tokens:
        legal = f"(1, {groups}, the room of {tokens} tokens or more, {depth})"
        raise node.malformed(f"a cache of shape {past.shape}", legal)
    return node.emit(DynamicUpdateSlice(), past, rows, begin)


def _refuse_grouped(node: OnnxNode) -> None:
    """Refuse what is not done, and caches that grow from run to run."""
    for name in ("kv_cache_bit_width", "qk_output", "sliding_window_cache", "smooth_softmax"):
        if value := node.integer(name, 0):
            raise node.unsupported(
                f"the attribute '{name}' is {value}", "0", f"export the model without {name}"
            )
    for name in ("k_quant_type", "v_quant_type"):
        if (kind := node.word(name, "NONE")) != "NONE":
            raise node.unsupported(
                f"the attribute '{name}' is {kind!r}", "NONE", "export with a cache of floats"
            )
    for index, name in _GROUPED_INPUTS.items():
        if node.optional(index) is not None:
            raise node.unsupported(
                f"it has the input '{name}'", "none of it", f"export the model without {name}"
            )
    room, total = node.optional(3), node.input(6).data
    most = 0 if total is None else int(total.max(initial=0))
    if room is not None and len(room.shape) == 4 and most > room.shape[2]:
        raise node.unsupported(
            f"its cache grows from {room.shape[2]} to {most} tokens",
            "a cache with room for all tokens, and an input with their number",
            "give the cache the shape of its longest sequence with --dim or --input-shapes",
        )
