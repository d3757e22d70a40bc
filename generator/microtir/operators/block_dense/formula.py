"""Compute layers whose weights have a scale for each block: unpacked where they are multiplied.

A block adds up x (q - z) as the sum of x q less z times the sum of x: integers need no subtraction
one by one then, and the sums of x, which all channels share, are computed once a row.  Rows that
are rounded lie in scratch as integers, and so are sums within a block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.block_dense.definition import (
    LARGEST,
    LEAST,
    BlockDense,
    block_dense_inputs,
    rounds_rows,
)
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
    lines = [f"  for row in range(0, {rows}):"]
    if rounds_rows(node):
        lines += _indented(_rounded(depth), 2)
    lines += _indented(_sums(node), 2)
    if pairs:
        at = tuple(f"n * {_CHANNELS_AT_ONCE} + {i}" for i in range(_CHANNELS_AT_ONCE))
        lines += [f"    for n in range(0, {pairs}):", *_indented(_Channels(node, at).lines(), 3)]
    for number in range(rest):
        at = (str(pairs * _CHANNELS_AT_ONCE + number),)
        lines += _indented(_Channels(node, at).lines(), 2)
    return written_function(
        node, name, operands, [("y", (rows, channels))], lines,
        scratch=("kept", DType.INT32, (depth + blocks,)) if rounds_rows(node)
        else ("kept", DType.FLOAT32, (blocks,)),
    )  # fmt: skip


_MAGNITUDE = 0x7FFFFFFF  # of a float, as bits; those of a NaN are the largest
_INFINITE = 0x7F800000


def _rounded(depth: int) -> Iterator[str]:
    """Yield the lines that make a row integers, and say what a 1 in it stands for."""
    yield "alloc bits: int32[] local"
    yield "bits[] = 0"
    yield f"for i in range(0, {depth}):"
    yield f"  bits[] = max(bits[], bits_of_float(x[row, i]) & {_MAGNITUDE})"
    yield "let largest: float32 = float_of_bits(bits[])"
    yield f"let is_small: bool = largest < float32({LEAST!r})"
    yield f"let factor: float32 = select(is_small, float32(0.0), largest / float32({LARGEST}.0))"
    yield f"let inverse: float32 = select(is_small, float32(0.0), float32({LARGEST}.0) / largest)"
    yield f"if bits[] < {_INFINITE}:"
    yield f"  for i in range(0, {depth}):"
    yield "    kept[i] = cast(int32, round_small(x[row, i] * inverse))"
    yield "else:"
    yield f"  for i in range(0, {depth}):"
    yield "    kept[i] = 0"


def _indented(lines: Iterator[str], depth: int) -> Iterator[str]:
    return (f"{'  ' * depth}{line}" for line in lines)


def _sums(node: Node) -> Iterator[str]:
    """Yield the lines that add up each block of a row of x."""
    op, depth = node.attributes(BlockDense), node.inputs[0].shape[-1]
    kind, zero, first = ("int32", "0", f"{depth} + ") if op.rounds_rows else _OF_FLOATS
    whole, rest = divmod(depth, op.block)
    for begin, blocks, count in ((0, whole, op.block), (whole, 1, rest)):
        if blocks and count:
            yield f"for b in range({begin}, {begin + blocks}):"
            yield f"  alloc sum: {kind}[] local"
            yield f"  sum[] = {zero}"
            yield f"  for i in range(0, {count}):"
            yield f"    sum[] = sum[] + {_element(op, f'b * {op.block} + i')}"
            yield f"  kept[{first}b] = sum[]"


_OF_FLOATS = "float32", "float32(0.0)", ""


def _element(op: BlockDense, place: str) -> str:
    """Return an element of the row that is multiplied."""
    return f"kept[{place}]" if op.rounds_rows else f"x[row, {place}]"


@dataclass(frozen=True, slots=True)
class _Channels:
    """The lines of some channels of a row, whose numbers are expressions."""

    node: Node
    at: tuple[str, ...]

    @property
    def _op(self) -> BlockDense:
        return self.node.attributes(BlockDense)

    def lines(self) -> Iterator[str]:
        op, depth = self._op, self.node.inputs[0].shape[-1]
        for c, n in enumerate(self.at):
            yield f"alloc total{c}: float32[] local"
            is_first = op.has_bias and not op.rounds_rows
            yield f"total{c}[] = {f'bias[{n}]' if is_first else 'float32(0.0)'}"
        whole, rest = divmod(depth, op.block)
        if whole:
            yield f"for b in range(0, {whole}):"
            yield from _indented(self._block("b", op.block), 1)
        if rest:
            yield from self._block(str(whole), rest)
        for c, n in enumerate(self.at):
            scaled = f" * factor{f' + bias[{n}]' * op.has_bias}" if op.rounds_rows else ""
            yield f"y[row, {n}] = total{c}[]{scaled}"

    def _block(self, block: str, count: int) -> Iterator[str]:
        """Yield the lines that add the products of a block of so many weights."""
        rounds = self._op.rounds_rows
        kind, zero, _ = ("int32", "0", "") if rounds else _OF_FLOATS
        for c in range(len(self.at)):
            yield f"alloc part{c}_{block}: {kind}[] local"
            yield f"part{c}_{block}[] = {zero}"
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
            part, total = f"part{c}_{block}[]", f"kept[{block}]"
            if rounds:
                depth = self.node.inputs[0].shape[-1]
                part, total = f"cast(float32, {part})", f"cast(float32, kept[{depth} + {block}])"
            part = f"{part} - {self._zero_point(n, block)} * {total}"
            yield f"total{c}[] = total{c}[] + ({part}) * scales[{n}, {block}]"

    def _products(self, block: str, place: str, count: int) -> Iterator[str]:
        """Yield the lines that add the products of the first integers of a byte."""
        op = self._op
        for c, n in enumerate(self.at):
            yield f"let byte{c}: int32 = cast(int32, w[{n}, {block}, {place}])"
        for number in range(count):
            of_row = f"{block} * {op.block} + ({place}) * {op.in_a_byte} + {number}"
            kind = "int32" if op.rounds_rows else "float32"
            yield f"let value: {kind} = {_element(op, of_row)}"
            for c in range(len(self.at)):
                stored = f"byte{c} >> {number * op.bits}" if number else f"byte{c}"
                if number < op.in_a_byte - 1:
                    stored = f"({stored}) & {(1 << op.bits) - 1}"
                part = f"part{c}_{block}[]"
                weight = f"({stored})" if op.rounds_rows else f"cast(float32, {stored})"
                yield f"{part} = {part} + value * {weight}"

    def _zero_point(self, n: str, block: str) -> str:
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
    depth = node.inputs[0].shape[-1] if rounds_rows(node) else 0
    return (depth + block_dense_inputs(node).scales.shape[1]) * DType.FLOAT32.bytes


def cost(node: Node) -> int:
    """Estimate the instructions of a node."""
    rounding = 14 * node.inputs[0].type.elements if rounds_rows(node) else 0
    return 6 * node.output.type.elements * node.inputs[0].shape[-1] + rounding
