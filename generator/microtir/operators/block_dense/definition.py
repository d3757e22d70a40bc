"""Define layers of floats whose weights are integers of few bits with a scale for each block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators.common import images, quantization, types
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class BlockDense(Operator):
    """Inputs: (..., K), weights (N, blocks, bytes), scales (N, blocks), zero points, a bias (N,).

    A weight is scale * (stored integer - zero point).  Integers without sign lie `8 / bits` in a
    byte, the first one in its low bits; those behind the last of K are never read.  Zero points,
    without which the one of all blocks is the middle of the range, are floats, one a block, or
    packed as the weights are along the blocks of a row.

    `rounds_rows` rounds each row of x to 8 bits first: to the nearest multiple, the even one of
    two, of its largest magnitude over 127, so that products are of integers.  A row whose largest
    magnitude is below 2^-120 counts as zeros, and one that holds no number or an infinite one gives
    no numbers.
    """

    bits: int = 4
    block: int = 32
    has_zero_points: bool = False
    has_bias: bool = False
    rounds_rows: bool = False

    @property
    def in_a_byte(self) -> int:
        return 8 // self.bits

    @property
    def middle(self) -> int:
        """Return the zero point of all blocks where none are given."""
        return 1 << (self.bits - 1)

    def packed(self, count: int) -> int:
        """Return the bytes of so many integers."""
        return -(-count // self.in_a_byte)


LARGEST = 127
"""Integer that the largest magnitude of a row becomes."""

LEAST = 2.0**-120
"""Least magnitude of which that is so: 127 divided by it is finite."""


class BlockDenseInputs(NamedTuple):
    """The inputs of a node by what they are."""

    x: Tensor
    weights: Tensor
    scales: Tensor
    zero_points: Tensor | None
    bias: Tensor | None


def block_dense_inputs(node: Node) -> BlockDenseInputs:
    """Return what each input of a node is."""
    op = node.attributes(BlockDense)
    x, weights, scales, *more = node.inputs
    zero_points = more[0] if op.has_zero_points else None
    return BlockDenseInputs(x, weights, scales, zero_points, more[-1] if op.has_bias else None)


def rounds_rows(node: Node) -> bool:
    """Return whether a node is such a layer and rounds the rows that it reads."""
    return isinstance(node.op, BlockDense) and node.op.rounds_rows


BITS = (2, 4, 8)
"""Legal numbers of bits of a weight."""


def _shape(node: Node) -> tuple[Shape, ...]:
    op = node.attributes(BlockDense)
    count = 3 + op.has_zero_points + op.has_bias
    require(len(node.inputs) == count, f"{len(node.inputs)} inputs", f"{count}")
    require(op.bits in BITS, f"weights of {op.bits} bits", ", ".join(map(str, BITS)))
    inputs = block_dense_inputs(node)
    require(len(inputs.x.shape) > 0, "an input without dimensions", "rows of elements")
    *rows, depth = inputs.x.shape
    channels, blocks, size = input_shape(node, 1, 3)
    fits = op.block > 0 and op.block % op.in_a_byte == 0 and size == op.packed(op.block)
    require(fits, f"blocks of {op.block} weights in {size} bytes")
    require(
        blocks == -(-depth // op.block),
        f"rows of {depth} elements for {blocks} blocks of {op.block} weights",
        f"{(blocks - 1) * op.block + 1} to {blocks * op.block} elements",
    )
    _require(inputs.scales, (channels, blocks))
    if inputs.zero_points is not None:
        is_float = inputs.zero_points.dtype.is_float
        _require(inputs.zero_points, (channels, blocks if is_float else op.packed(blocks)))
    if inputs.bias is not None:
        _require(inputs.bias, (channels,))
    constants = all(tensor.is_constant for tensor in node.inputs[1:])
    require(constants, "weights that the model computes", "constants")
    return ((*rows, channels),)


def _require(tensor: Tensor, shape: Shape) -> None:
    require(tensor.shape == shape, f"'{tensor.name}' of shape {tensor.shape}", f"{shape}")


def _macs(node: Node) -> int:
    return math.prod(node.inputs[0].shape) * node.inputs[1].shape[0]


_F32, _U8 = DType.FLOAT32, DType.UINT8

DEFINITIONS = (
    Definition(
        BlockDense,
        types=types.TypeRule(
            (
                types.TypeSignature((_F32, _U8, _F32), _F32),
                types.TypeSignature((_F32, _U8, _F32, _U8, _F32), _F32),
            )
        ),
        quantization=quantization.UNUSED,
        shapes=_shape,
        inputs=(3, 5),
        one_image=images.by_rows,
        terms=lambda node: node.inputs[0].shape[-1],
        macs=_macs,
        limits="constant weights",
    ),
)
