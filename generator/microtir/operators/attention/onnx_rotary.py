"""Read RotaryEmbedding, ONNX's and com.microsoft's."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Add
from microtir.operators.attention.definition import RotaryPositions
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import int32s, numbers, reshaped, transposed
from microtir.operators.common.onnx_types import cast


def rotary_embedding(node: OnnxNode) -> Tensor:
    """Read RotaryEmbedding: tables by position, or without positions the rows themselves."""
    x, cosines, sines = (node.input(index) for index in range(3))
    _check_rank(node, x)
    rows = x.shape[0] * x.shape[-2]
    places = node.optional(3)
    heads = x.shape[1] if len(x.shape) == 4 else node.integer("num_heads")
    if places is not None:
        return _turned(node, x, heads, (cosines, sines), _positions(node, places, rows))
    if any(len(table.shape) != 3 for table in (cosines, sines)):
        raise node.malformed(f"tables of {cosines.shape} without positions", "3 dimensions")
    flat = [reshaped(node, table, rows, table.shape[2]) for table in (cosines, sines)]
    return _turned(node, x, heads, (flat[0], flat[1]), numbers(node, rows))


def microsoft_rotary_embedding(node: OnnxNode) -> Tensor:
    """Read com.microsoft's RotaryEmbedding, which may be given the position of the first row."""
    x, places, cosines, sines = (node.input(index) for index in range(4))
    _check_rank(node, x)
    _refuse_attributes(node)
    batch, tokens = x.shape[0], x.shape[-2]
    angles = cosines.shape[-1] if cosines.shape else 0
    heads = node.integer("num_heads", 0)
    if len(x.shape) == 4:
        heads = x.shape[1]
    elif not heads:
        heads = max(x.shape[-1] // max(2 * angles, 1), 1)
    if places.type.elements == 1:
        positions = following(node, _positions(node, places, 1), tokens, batch)
    else:
        positions = _positions(node, places, batch * tokens)
    return _turned(node, x, heads, (cosines, sines), positions)


def _check_rank(node: OnnxNode, x: Tensor) -> None:
    if len(x.shape) not in (3, 4) or 0 in x.shape:
        raise node.malformed(f"an input of shape {x.shape}", "3 or 4 dimensions above 0")


def _positions(node: OnnxNode, places: Tensor, rows: int) -> Tensor:
    """Return a position for each row."""
    if places.type.elements != rows:
        raise node.malformed(f"{places.shape} positions of {rows} rows", "one each")
    return reshaped(node, cast(node, places, DType.INT32), rows)


def _turned(
    node: OnnxNode, x: Tensor, heads: int, tables: tuple[Tensor, Tensor], positions: Tensor
) -> Tensor:
    """Return (batch, rows, heads * D), or (batch, heads, rows, D), turned."""
    rows = x if len(x.shape) == 3 else transposed(node, x, (0, 2, 1, 3))
    batch, tokens = rows.shape[:2]
    flat = reshaped(node, rows, batch, tokens, x.type.elements // (batch * tokens))
    op = RotaryPositions(heads, bool(node.integer("interleaved", 0)))
    turned = node.emit(op, flat, *tables, positions)
    if len(x.shape) == 3:
        return turned
    return transposed(node, reshaped(node, turned, *rows.shape), (0, 2, 1, 3))


def following(node: OnnxNode, first: Tensor, tokens: int, batch: int = 1) -> Tensor:
    """Return the positions of the rows of each sequence, from that of the first one on."""
    if tokens * batch == 1:
        return first
    node.check_room(tokens, batch)
    return node.emit(Add(), first, int32s(node, np.tile(np.arange(tokens), batch)))


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
