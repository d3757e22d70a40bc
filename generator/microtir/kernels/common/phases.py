"""The convolutions that a transposed one consists of: one for each phase of its strides.

Output pixels that are a stride apart are computed by the same taps, from neighbouring pixels of the
input: they are the outputs of a convolution of stride 1, whose weights are some of all, the last
one first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from microtir import te
from microtir.graph.ir import Node, Tensor
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
        node: the convolution that computes them.
        first: row and column of the first one.
        strides: rows and columns from one to the next.
    """

    node: Node
    first: tuple[int, int]
    strides: tuple[int, int]


@of_node
def phases(node: Node) -> tuple[Phase, ...]:
    """Return the phases of a layer of constant weights, those without pixels left out."""
    op, sizes = node.op, node.output.shape[1:3]
    assert isinstance(op, TransposeConv)
    every = product(*(range(min(s, size)) for s, size in zip(op.strides, sizes, strict=True)))
    return tuple(_phase(node, op, first) for first in every)


def _phase(node: Node, op: TransposeConv, first: tuple[int, ...]) -> Phase:
    x, w, *bias = node.inputs
    batch, *sizes, outputs = node.output.shape
    weights, before, counts = w.data, [], []
    assert weights is not None, "refusal() was asked"
    for axis, (place, stride) in enumerate(zip(first, op.strides, strict=True)):
        ahead, tap = divmod(place + op.before[axis], stride)
        taps = range(tap, w.shape[axis + 1], stride)[::-1]
        # Where no window reaches, one tap counts for nothing.
        weights = np.take(weights, taps, axis + 1) if taps else 0 * weights.take([0], axis + 1)
        before.append(max(len(taps), 1) - 1 - ahead)
        counts.append(-(-(sizes[axis] - place) // stride))
    type_ = replace(node.output.type, shape=(batch, *counts, outputs))
    y = Tensor(node.output.name, type_)
    shared = Tensor(w.name, replace(w.type, shape=weights.shape), weights)
    padding = Padding2D(top=before[0], left=before[1])
    conv = replace(node, op=Conv2D(padding=padding, activation=op.activation),
                   inputs=(x, shared, *bias), outputs=(y,))  # fmt: skip
    return Phase(conv, (first[0], first[1]), op.strides)


class SpreadPixels(Sink):
    """Outputs of a phase among those of the others."""

    def __init__(self, rows: Rows, phase: Phase) -> None:
        self._rows, self._phase = rows, phase

    def at(self, pixel: Pixel, channel: te.ExprLike) -> Arguments:
        (row, column), (down, right) = self._phase.first, self._phase.strides
        place = pixel.row * down + row, pixel.column * right + column
        return (self._rows.at(*place, channel),)
