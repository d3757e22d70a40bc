"""The convolutions that a transposed one consists of: one for each phase of its strides.

Output pixels that are a stride apart are computed by the same taps, from neighbouring pixels of the
input: they are the outputs of a convolution of stride 1, whose weights are some of all, the last
one first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from microtir import te
from microtir.graph.ir import Array, Node, Tensor
from microtir.kernels.common.layer import Rows
from microtir.kernels.common.macro_kernel import Arguments, Pixel, Sink
from microtir.kernels.common.made_once import of_node
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.transposed_convolution.definition import TransposeConv


@dataclass(frozen=True, slots=True)
class Phase:
    """Some output pixels of a transposed convolution.

    Attributes:
        node: the convolution that computes them; its channels may be those of several pixels of a
            row, which follow each other.
        first: row and column of the first one.
        strides: rows and columns from one to the next.
        step: pixels of the whole output from the channels of one to those of the next.
    """

    node: Node
    first: tuple[int, int]
    strides: tuple[int, int]
    step: int

    @property
    def is_whole(self) -> bool:
        """Return whether it is all of the output."""
        return self.strides == (1, 1)


@of_node
def phases(node: Node) -> tuple[Phase, ...]:
    """Return the phases of a layer of constant weights, those without pixels left out."""
    op, sizes = _op(node), node.output.shape[1:3]
    rows, columns = (range(min(s, size)) for s, size in zip(op.strides, sizes, strict=True))
    return tuple(_phase(node, row, range(n, n + 1)) for row in rows for n in columns)


@of_node
def phases_of_rows(node: Node) -> tuple[Phase, ...]:
    """Return phases of whole rows, whose pixels are channels; none where rows have other pixels.

    Taps that only some of these pixels have count for nothing in the others.
    """
    op, (height, width) = _op(node), node.output.shape[1:3]
    down, right = op.strides
    if right == 1 or width % right:
        return ()
    return tuple(_phase(node, row, range(right)) for row in range(min(down, height)))


def _op(node: Node) -> TransposeConv:
    return node.attributes(TransposeConv)


@dataclass(frozen=True, slots=True)
class _Taps:
    """The taps of a phase along an axis, of which `before` lie before its own pixel."""

    numbers: range
    before: int

    @staticmethod
    def of(op: TransposeConv, axis: int, size: int, place: int) -> _Taps:
        ahead, tap = divmod(place + op.before[axis], op.strides[axis])
        numbers = range(tap, size, op.strides[axis])[::-1]
        return _Taps(numbers, max(len(numbers), 1) - 1 - ahead)

    @property
    def behind(self) -> int:
        return max(len(self.numbers), 1) - 1 - self.before

    def of_weights(self, weights: Array, axis: int) -> Array:
        """Return the weights of these taps; without a tap, of one that counts for nothing."""
        if not self.numbers:
            return 0 * weights.take([0], axis)
        return np.take(weights, self.numbers, axis)


def _phase(node: Node, row: int, columns: range) -> Phase:
    """Return the phase of a row, and of a column or of several that are channels."""
    op, (x, w, *bias) = _op(node), node.inputs
    weights, (batch, height, width, outputs) = w.values, node.output.shape
    down = _Taps.of(op, 0, w.shape[1], row)
    of_row, across = down.of_weights(weights, 1), [_Taps.of(op, 1, w.shape[2], n) for n in columns]
    left, right = max(taps.before for taps in across), max(taps.behind for taps in across)
    parts = [
        np.pad(taps.of_weights(of_row, 2),
               ((0, 0), (0, 0), (left - taps.before, right - taps.behind), (0, 0)))
        for taps in across
    ]  # fmt: skip
    times, (stride, step) = len(columns), op.strides
    counts = -(-(height - row) // stride), -(-(width - columns.start) // step)
    type_ = replace(node.output.type, shape=(batch, *counts, outputs * times))
    padding = Padding2D(top=down.before, left=left)
    biases = (_repeated(b, np.tile(b.data, times), times) for b in bias if b.data is not None)
    conv = replace(
        node,
        op=Conv2D(padding=padding, activation=op.activation, rescaling=op.rescaling),
        inputs=(x, _repeated(w, np.concatenate(parts), times), *biases),
        outputs=(Tensor(node.output.name, type_),),
    )
    return Phase(conv, (row, columns.start), op.strides, step // times)


def _repeated(tensor: Tensor, data: Array, times: int) -> Tensor:
    """Return constants of channels that come so many times, with scales as often."""
    scales = tensor.type.quantization
    if scales is not None and scales.is_per_channel:
        scales = replace(
            scales, scales=scales.scales * times, zero_points=scales.zero_points * times
        )
    type_ = replace(tensor.type, shape=data.shape, quantization=scales)
    return Tensor(tensor.name, type_, data)


class SpreadPixels(Sink):
    """Outputs of a phase among those of the others."""

    def __init__(self, rows: Rows, phase: Phase) -> None:
        self._rows, self._phase = rows, phase

    def at(self, pixel: Pixel, channel: te.ExprLike) -> Arguments:
        (row, column), (down, right) = self._phase.first, self._phase.strides
        place = pixel.row * down + row, pixel.column * right + column
        return (self._rows.at(*place, channel),)
