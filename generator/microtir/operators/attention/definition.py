"""Define attention over a cache of keys and values, and rotary positions.

ONNX's own Attention is the function by which ONNX defines it, over all of its keys.  These two are
for models that compute a token a run: what is not in the cache yet costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.common.types import TypeRule, TypeSignature
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class RotaryPositions(Operator):
    """Turns pairs of elements of each head by angles that belong to the position of a row.

    Inputs: x (..., heads * D) read as rows of heads, cosines and sines (positions, R), and the
    position of each row, of which the nearest in the tables is taken.  The first 2 R elements of a
    head are turned: element i with element i + R or, `interleaved`, element 2 i with the next.
    """

    heads: int = 1
    interleaved: bool = False


@dataclass(frozen=True, slots=True)
class CachedAttention(Operator):
    """Attention of the newest tokens to those of a cache, which they are the last of.

    Inputs: queries (..., heads * D) of S tokens, keys (1, groups, L, D), values (1, groups, L, V),
    and the place in the cache of the last token, which is below 0 if one that is new sees nothing:
    then it gives zeros.  Heads that follow each other share a group.  Keys and values of int8 have
    two more inputs: their scales (1, groups, L, 1).
    Output: (..., heads * V).  A token sees those before it and itself, or all if it is not causal,
    and of these only the last `window` if that is not 0.  `softcap` above 0 bounds products.
    """

    heads: int = 1
    scale: float = 1.0
    softcap: float = 0.0
    window: int = 0
    is_causal: bool = True


class RotaryExtents(NamedTuple):
    """Numbers of rows, heads of each, elements of a head, angles, and places that have angles."""

    rows: int
    heads: int
    elements: int
    angles: int
    places: int


class AttentionExtents(NamedTuple):
    """Numbers of new tokens, of heads and their groups, and the extents of the cache."""

    tokens: int
    heads: int
    groups: int
    length: int
    depth: int
    width: int


def rotary_extents(node: Node) -> RotaryExtents:
    """Return the extents of rotary positions."""
    op, shape = node.attributes(RotaryPositions), node.inputs[0].shape
    places, angles = node.inputs[1].shape
    return RotaryExtents(math.prod(shape[:-1]), op.heads, shape[-1] // op.heads, angles, places)


def attention_extents(node: Node) -> AttentionExtents:
    """Return the extents of an attention over a cache."""
    op, tokens = node.attributes(CachedAttention), math.prod(node.inputs[0].shape[:-1])
    _, groups, length, depth = node.inputs[1].shape
    return AttentionExtents(tokens, op.heads, groups, length, depth, node.inputs[2].shape[3])


def _rotary_shape(node: Node) -> tuple[Shape, ...]:
    op, x = node.attributes(RotaryPositions), node.inputs[0].shape
    require(len(x) > 0 and op.heads > 0 and x[-1] % op.heads == 0, f"{op.heads} heads of {x}")
    tables = input_shape(node, 1, 2)
    require(input_shape(node, 2, 2) == tables, f"sines of {node.inputs[2].shape}", f"{tables}")
    most = x[-1] // op.heads // 2
    require(1 <= tables[1] <= most, f"{tables[1]} angles of heads of {x[-1] // op.heads} elements",
            f"1 to {most}")  # fmt: skip
    rows = math.prod(x[:-1])
    require(node.inputs[3].type.elements == rows, f"{node.inputs[3].type.elements} positions of "
            f"{rows} rows", "as many")  # fmt: skip
    return (x,)


def _attention_shape(node: Node) -> tuple[Shape, ...]:
    op, queries = node.attributes(CachedAttention), node.inputs[0].shape
    keys, values = input_shape(node, 1, 4), input_shape(node, 2, 4)
    require(keys[0] == 1 and keys[:3] == values[:3], f"keys of {keys} and values of {values}",
            "the same number for one sequence")  # fmt: skip
    _, groups, length, depth = keys
    require(op.heads > 0 and op.heads % groups == 0, f"{op.heads} heads of {groups} groups")
    require(queries[-1:] == (op.heads * depth,), f"queries of {queries}", f"{op.heads} of {depth}")
    tokens = math.prod(queries[:-1])
    require(tokens <= length, f"{tokens} tokens for a cache of {length}", f"1 to {length}")
    require(node.inputs[3].type.elements == 1, f"{node.inputs[3].shape} places", "one")
    scales = [tensor.shape for tensor in node.inputs[4:]]
    require(scales in ([], [(*keys[:3], 1)] * 2), f"scales of {scales}", f"two of {keys[:3]}")
    require(op.window >= 0 and op.softcap >= 0, "a window or softcap below 0", "0, or more")
    return ((*queries[:-1], op.heads * values[3]),)


def _attention_macs(node: Node) -> int:
    """Return the most that a run computes, with a full cache."""
    tokens, heads, _, length, depth, width = attention_extents(node)
    return tokens * heads * length * (depth + width)


_F32, _I8, _I32 = DType.FLOAT32, DType.INT8, DType.INT32
_FLOATS = TypeRule((TypeSignature((_F32,), _F32),)).indexed(3, _I32)

DEFINITIONS = (
    Definition(
        RotaryPositions, types=_FLOATS, quantization=UNUSED, shapes=_rotary_shape, inputs=(4, 4)
    ),
    Definition(
        CachedAttention,
        types=TypeRule(
            (
                TypeSignature((_F32, _F32, _F32, _I32), _F32),
                TypeSignature((_F32, _I8, _I8, _I32, _F32), _F32),
            )
        ),
        quantization=UNUSED,
        shapes=_attention_shape,
        inputs=(4, 6),
        macs=_attention_macs,
    ),
)
