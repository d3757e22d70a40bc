"""Read com.microsoft's RotaryEmbedding, and turn what attention over a cache turns itself."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Add
from microtir.operators.attention.definition import RotaryPositions
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import int32s, reshaped, transposed
from microtir.operators.common.onnx_types import cast


def rotary_embedding(node: OnnxNode) -> Tensor:
    """Read com.microsoft's RotaryEmbedding: tables of cosines and sines by position."""
    x, given, cosines, sines = (node.input(index) for index in range(4))
    if len(x.shape) not in (3, 4):
        raise node.malformed(f"an input of shape {x.shape}", "3 or 4 dimensions")
    _refuse_attributes(node)
    batch, tokens = x.shape[0], x.shape[-2]
    angles = cosines.shape[-1] if cosines.shape else 0
    heads = node.integer("num_heads", 0)
    if len(x.shape) == 4:
        heads = x.shape[1]
    elif not heads:
        heads = max(x.shape[-1] // max(2 * angles, 1), 1)
    count = given.type.elements
    if count not in (1, batch * tokens):
        raise node.malformed(f"{given.shape} positions of {batch} times {tokens} rows", "one each")
    positions = reshaped(node, cast(node, given, DType.INT32), count)
    if count == 1:
        positions = following(node, positions, tokens, batch)
    rows = x if len(x.shape) == 3 else transposed(node, x, (0, 2, 1, 3))
    flat = reshaped(node, rows, batch, tokens, x.type.elements // (batch * tokens))
    op = RotaryPositions(heads, bool(node.integer("interleaved", 0)))
    turned = node.emit(op, flat, cosines, sines, positions)
    if len(x.shape) == 3:
        return turned
    return transposed(node, reshaped(node, turned, *rows.shape), (0, 2, 1, 3))


def following(node: OnnxNode, first: Tensor, tokens: int, batch: int = 1) -> Tensor:
    """Return the positions of the rows of each sequence, from that of the first one on."""
    if tokens * batch == 1:
        return first
    numbers = int32s(node, np.tile(np.arange(tokens), batch))
    return node.emit(Add(), first, numbers)


def _refuse_attributes(node: OnnxNode) -> None:
    """Refuse rows of several lengths in one tensor, and a factor that onnxruntime leaves out."""
    if node.integer("is_packed_batching", 0):
        raise node.unsupported(
            "the attribute 'is_packed_batching' is 1", "0", "export sequences of one length"
        )
    if (scale := node.number("scale", 1.0)) != 1.0:
        raise node.unsupported(
            f"the attribute 'scale' is {scale}", "1.0", "multiply the tables by it"
        )
