"""Compute layers whose weights have a scale for each block: unpacked where they are multiplied.

A block adds up x (q - z) as the sum of x q less z times the sum of x: integers need no subtraction
one by one then, and the sums of x, which all channels share, are computed once a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.block_dense.definition import BlockDense, block_dense_inputs
from microtir.operators.common.written_function import written_function
from microtir.tir.ir import PrimFunc

_BYTES_A_TURN = 4
_CHANNELS_AT_ONCE = 2
"""Each element of x is loaded once for so many channels."""


def block_dense(node: Node, name: str) -> PrimFunc:
    """Write sums of products, a few channels at once, block by block."""
    inputs = block_dense_inputs(node)
    rows, depth = math.prod(inputs.x.shape[:-1]), inputs.x.shape[-1]
    channels, blocks, _ = inputs.weights.shape
    operands = [("x", (rows, depth)), ("w", inputs.weights.shape), ("scales", inputs.scales.shape)]
    if inputs.zero_points is not None:
        operands.append(("zeros", inputs.zero_points.shape))
    if inputs.bias is not None:
        operands.append(("bias", (channels,)))
    pairs, rest = divmod(channels, _CHANNELS_AT_ONCE)
    lines = [f"  for row in range(0, {rows}):", *_indented(_sums(node), 2)]
    if pairs:
        at = tuple(f"n * {_CHANNELS_AT_ONCE} + {i}" for i in range(_CHANNELS_AT_ONCE))
        lines += [f"    for n in range(0, {pairs}):", *_indented(_Channels(node, at).lines(), 3)]
    for number in range(rest):
        at = (str(pairs * _CHANNELS_AT_ONCE + number),)
        lines += _indented(_Channels(node, at).lines(), 2)
    return written_function(
        node, name, operands, [("y", (rows, channels))], lines,
        scratch=("sums", DType.FLOAT32, (blocks,)),
    )  # fmt: skip


def _indented(lines: Iterator[str], depth: int) -> Iterator[str]:
    return (f"{'  ' * depth}{line}" for line in lines)


def _sums(node: Node) -> Iterator[str]:
    """Yield the lines that add up each block of a row of x."""
    op, depth = node.op, node.inputs[0].shape[-1]
    assert isinstance(op, BlockDense)
    whole, rest = divmod(depth, op.block)
    for begin, blocks, count in ((0, whole, op.block), (whole, 1, rest)):
        if blocks and count:
            yield f"for b in range({begin}, {begin + blocks}):"
            yield "  alloc sum: float32[] local"
            yield "  sum[] = float32(0.0)"
            yield f"  for i in range(0, {count}):"
            yield f"    sum[] = sum[] + x[row, b * {op.block} + i]"
            yield "  sums[b] = sum[]"


@dataclass(frozen=True, slots=True)
class _Channels:
    """The lines of some channels of a row, whose numbers are expressions."""

    node: Node
    at: tuple[str, ...]

    @property
    def _op(self) -> BlockDense:
        assert isinstance(self.node.op, BlockDense)
        return self.node.op

    def lines(self) -> Iterator[str]:
        """Yield the lines that compute the channels."""
        op, depth = self._op, self.node.inputs[0].shape[-1]
        for c, n in enumerate(self.at):
            yield f"alloc total{c}: float32[] local"
            yield f"total{c}[] = {f'bias[{n}]' if op.has_bias else 'float32(0.0)'}"
        whole, rest = divmod(depth, op.block)
        if whole:
            yield f"for b in range(0, {whole}):"
            yield from _indented(self._block("b", op.block), 1)
        if rest:
            yield from self._block(str(whole), rest)
        for c, n in enumerate(self.at):
            yield f"y[row, {n}] = total{c}[]"

    def _block(self, block: str, count: int) -> Iterator[str]:
        """Yield the lines that add the products of a block of so many weights."""
        for c in range(len(self.at)):
            yield f"alloc part{c}_{block}: float32[] local"
            yield f"part{c}_{block}[] = float32(0.0)"
        size, rest = divmod(count, self._op.in_a_byte)
        step = math.gcd(size, _BYTES_A_TURN)
        if size:
            yield f"for j in range(0, {size // step}):"
            for number in range(step):
                place = f"j * {step} + {number}"
                yield from _indented(self._products(block, place, self._op.in_a_byte), 1)
        if rest:
            yield from self._products(block, str(size), rest)
        for c, n in enumerate(self.at):
            part = f"part{c}_{block}[] - {self._zero_point(n, block)} * sums[{block}]"
            yield f"total{c}[] = total{c}[] + ({part}) * scales[{n}, {block}]"

    def _products(self, block: str, place: str, count: int) -> Iterator[str]:
        """Yield the lines that add the products of the first integers of a byte."""
        op = self._op
        for c, n in enumerate(self.at):
            yield f"let byte{c}: int32 = cast(int32, w[{n}, {block}, {place}])"
        for number in range(count):
            yield (
                f"let value: float32 = x[row, {block} * {op.block} + ({place}) * {op.in_a_byte}"
                f" + {number}]"
            )
            for c in range(len(self.at)):
                stored = f"byte{c} >> {number * op.bits}" if number else f"byte{c}"
                if number < op.in_a_byte - 1:
                    stored = f"({stored}) & {(1 << op.bits) - 1}"
                part = f"part{c}_{block}[]"
                yield f"{part} = {part} + value * cast(float32, {stored})"

    def _zero_point(self, n: str, block: str) -> str:
        """Return the zero point of a block as a float."""
        op, zeros = self._op, block_dense_inputs(self.node).zero_points
        if zeros is None:
            return f"float32({float(op.middle)})"
        if zeros.dtype.is_float:
            return f"zeros[{n}, {block}]"
        byte = f"cast(int32, zeros[{n}, {block} >> {op.in_a_byte.bit_length() - 1}])"
        shift = f"({block} & {op.in_a_byte - 1}) * {op.bits}"
        return f"cast(float32, ({byte} >> {shift}) & {(1 << op.bits) - 1})"


def scratch_bytes(node: Node) -> int:
    """Return the bytes of workspace that a call takes."""
    return block_dense_inputs(node).scales.shape[1] * DType.FLOAT32.bytes


def cost(node: Node) -> int:
    """Estimate the instructions of a node."""
    return 6 * node.output.type.elements * node.inputs[0].shape[-1]
