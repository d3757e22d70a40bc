"""Compute layers whose weights have a scale for each block: unpacked where they are multiplied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.block_dense.definition import BlockDense, block_dense_inputs
from microtir.operators.common.formula import WrittenFunction
from microtir.operators.common.written_function import written_function
from microtir.tir.ir import PrimFunc

_BYTES_A_TURN = 4


def block_dense(node: Node, name: str) -> PrimFunc:
    """Write sums of products block by block; each sum of a block is multiplied by its scale."""
    inputs = block_dense_inputs(node)
    rows, depth = math.prod(inputs.x.shape[:-1]), inputs.x.shape[-1]
    channels = node.output.shape[-1]
    operands = [("x", (rows, depth)), ("w", inputs.weights.shape), ("scales", inputs.scales.shape)]
    if inputs.zero_points is not None:
        operands.append(("zeros", inputs.zero_points.shape))
    if inputs.bias is not None:
        operands.append(("bias", (channels,)))
    start = "float32(0.0)" if inputs.bias is None else "bias[n]"
    lines = [
        f"  for row in range(0, {rows}):",
        f"    for n in range(0, {channels}):",
        "      alloc total: float32[] local",
        f"      total[] = {start}",
        *_blocks(node),
        "      y[row, n] = total[]",
    ]
    return written_function(node, name, operands, [("y", (rows, channels))], lines)


def _blocks(node: Node) -> Iterator[str]:
    """Yield the lines that add the products of a row and a channel."""
    op, depth = node.op, node.inputs[0].shape[-1]
    assert isinstance(op, BlockDense)
    whole, rest = divmod(depth, op.block)
    if whole:
        yield f"      for b in range(0, {whole}):"
        for line in _block(node, "b", op.block):
            yield f"        {line}"
    if rest:
        for line in _block(node, str(whole), rest):
            yield f"      {line}"


def _block(node: Node, block: str, count: int) -> Iterator[str]:
    """Yield the lines that add the products of a block of so many weights."""
    op = node.op
    assert isinstance(op, BlockDense)
    yield from _zero_point(node, block)
    yield f"alloc part_{block}: float32[] local"
    yield f"part_{block}[] = float32(0.0)"
    size, rest = divmod(count, op.in_a_byte)
    step = math.gcd(size, _BYTES_A_TURN)
    if size:
        yield f"for j_{block} in range(0, {size // step}):"
        for number in range(step):
            place = f"j_{block} * {step} + {number}"
            yield from (f"  {line}" for line in _products(node, block, place, op.in_a_byte))
    if rest:
        yield from _products(node, block, str(size), rest)
    yield f"total[] = total[] + part_{block}[] * scales[n, {block}]"


def _zero_point(node: Node, block: str) -> Iterator[str]:
    """Yield the line that reads the zero point of a block, if it has one of its own."""
    op, zeros = node.op, block_dense_inputs(node).zero_points
    assert isinstance(op, BlockDense)
    if zeros is None:
        return
    if zeros.dtype.is_float:
        yield f"let zero_{block}: float32 = zeros[n, {block}]"
        return
    per_byte = op.in_a_byte
    byte = f"cast(int32, zeros[n, {block} >> {per_byte.bit_length() - 1}])"
    shift = f"({block} & {per_byte - 1}) * {op.bits}"
    yield f"let zero_{block}: int32 = ({byte} >> {shift}) & {(1 << op.bits) - 1}"


def _products(node: Node, block: str, place: str, count: int) -> Iterator[str]:
    """Yield the lines that add the products of the first integers of a byte."""
    op, zeros = node.op, block_dense_inputs(node).zero_points
    assert isinstance(op, BlockDense)
    begin = f"{block} * {op.block}"
    yield f"let byte: int32 = cast(int32, w[n, {block}, {place}])"
    for number in range(count):
        stored = f"byte >> {number * op.bits}" if number else "byte"
        if number < op.in_a_byte - 1:
            stored = f"({stored}) & {(1 << op.bits) - 1}"
        if zeros is not None and zeros.dtype.is_float:
            weight = f"cast(float32, {stored}) - zero_{block}"
        else:
            zero = op.middle if zeros is None else f"zero_{block}"
            weight = f"cast(float32, ({stored}) - {zero})"
        source = f"x[row, {begin} + ({place}) * {op.in_a_byte} + {number}]"
        yield f"part_{block}[] = part_{block}[] + {source} * ({weight})"


def _cost(node: Node) -> int:
    return 8 * node.output.type.elements * node.inputs[0].shape[-1]


FORMULAS: Mapping[type[Operator], WrittenFunction] = MappingProxyType(
    {BlockDense: WrittenFunction(block_dense, cost=_cost)}
)
