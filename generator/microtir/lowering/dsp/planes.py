"""Depthwise convolutions 3x3 over planes: each row is split into its channels once.

The planes of three rows are kept in scratch, one of them replaced for every output row.  Values
outside the image are the input's zero point, for which the bias accounts.
"""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.graph.ir import Node
from microtir.lowering.bordered_rows import Geometry
from microtir.lowering.dsp import depthwise as words
from microtir.lowering.dsp.code import at, let, loop, seq, when
from microtir.lowering.dsp.copy_kernels import fill
from microtir.lowering.dsp.linear import constant
from microtir.lowering.dsp.micro_kernel import call
from microtir.lowering.dsp.planes_kernels import (
    OUTPUTS,
    TAPS,
    Plane,
    depthwise,
    instructions,
    split,
    words_of,
)
from microtir.lowering.layer import Layer
from microtir.lowering.refusals import depthwise_refusal
from microtir.plan.ir import Refusal
from microtir.tir import ir
from microtir.tir.dtype import DType

_IMMEDIATE = 4095  # largest offset of a load or store
_STRIDES = (1, 2)


def _plane(geometry: Geometry) -> Plane:
    columns, channels = geometry.windows.columns, geometry.image.channels
    return Plane(channels, geometry.output.width, columns.stride, columns.before, geometry.copied)


def refusal(node: Node) -> Refusal | None:
    """What speaks against it: int8, one image, one output per channel, 3x3 taps, whole words."""
    reason = depthwise_refusal(node)
    if reason is not None:
        return reason
    geometry = Geometry.of(node)
    rows, columns, plane = geometry.windows.rows, geometry.windows.columns, _plane(geometry)
    fits = (
        (rows.taps, columns.taps) == (TAPS, TAPS)
        and (rows.dilation, columns.dilation) == (1, 1)
        and columns.stride in _STRIDES
    )
    if not fits:
        return Refusal.WINDOWS
    if plane.channels < OUTPUTS:
        return Refusal.FEW_CHANNELS
    if (OUTPUTS - 1) * max(plane.channels, plane.bytes) > _IMMEDIATE or plane.copied < 1:
        return Refusal.SIZES
    return Refusal.FORM if words.factors(node) is None else None


def scratch_bytes(node: Node) -> int:
    """Of the planes of three rows."""
    return TAPS * _plane(Geometry.of(node)).elements * DType.INT16.bytes


def cost(node: Node) -> int:
    """Instructions of all rows in one call, from counts of the emulated Cortex-M4."""
    geometry = Geometry.of(node)
    rows, output = geometry.windows.rows, geometry.output
    split_rows = min((output.height - 1) * rows.stride + TAPS, geometry.image.height)
    return split_rows * _split_cost(node) + output.height * _row_cost(node)


def row_cost(node: Node) -> int:
    """Instructions where every row is a call of its own and splits all that it needs."""
    return _calls_cost(node, 1)


def pair_cost(node: Node) -> int:
    """Instructions where two rows are a call, and share what they split."""
    return _calls_cost(node, 2)


def _calls_cost(node: Node, together: int) -> int:
    geometry = Geometry.of(node)
    calls = -(-geometry.output.height // together)
    split_rows = TAPS + (together - 1) * min(geometry.windows.rows.stride, TAPS)
    return calls * split_rows * _split_cost(node) + geometry.output.height * _row_cost(node)


def _split_cost(node: Node) -> int:
    """Instructions of splitting one row."""
    plane = _plane(Geometry.of(node))
    return plane.elements * 7 // 4 + plane.channels * 2 + 30


def _row_cost(node: Node) -> int:
    """Instructions of one output row."""
    return instructions(_plane(Geometry.of(node)))


def code_bytes(node: Node) -> int:
    """Of the kernels; other layers may use the same."""
    plane = _plane(Geometry.of(node))
    turns, rest = divmod(plane.outputs, OUTPUTS)
    return 270 + 260 * (turns > 0) + (70 + 45 * rest if rest else 0)


def emit(layer: Layer, name: str) -> ir.PrimFunc:
    """The layer function: for each output row the new rows into planes, then the kernel."""
    return _Emitter(layer).function(name)


class _Emitter:
    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.geometry = Geometry.of(layer.node)
        self.plane = _plane(self.geometry)
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        factors = words.factors(layer.node)
        assert factors is not None, "refusal() was asked"
        self.kernel = depthwise(self.plane, factors.rescaling)
        taps = layer.data(1)[0].astype(np.int8)
        self.words = constant("words", words_of(self.plane).pack(taps, factors.constants))
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        shape = (1, TAPS * self.plane.elements)
        self.planes = ir.Buffer("scratch", shape, DType.INT16, alignment=4)
        self.zero_point = layer.node.inputs[0].type.quant.zero_point

    def function(self, name: str) -> ir.PrimFunc:
        return self.layer.function(name, self.planes, loop(
            "row", self.layer.y0, self.layer.y1,
            lambda row: seq(self.fetch(row), self.output(row)),
        ))  # fmt: skip

    def fetch(self, row: te.Expr) -> ir.Stmt:
        """The rows behind an output row that the one before did not have."""
        rows = self.geometry.windows.rows
        top = row * rows.stride - rows.before
        kept = max(TAPS - rows.stride, 0)
        first = top + te.select(row == self.layer.y0, te.as_expr(0, DType.INT32), kept)
        return loop("y_in", first, top + TAPS, self.split)

    def split(self, y: te.Expr) -> ir.Stmt:
        """One row of the image, or what stands for one outside of it."""
        rows, target = self.geometry.windows.rows, self.planes_of(y)
        inside = call(split(self.plane, self.zero_point), self.x.at(y, 0, 0), target)
        if not rows.clips(self.geometry.output.height):
            return inside
        outside = call(fill(self.plane.elements, self.zero_point, DType.INT16), target)
        return when((y >= 0) & (y < rows.size), inside, outside)

    def planes_of(self, y: te.Expr) -> ir.BufferArgument:
        """Where the planes of a row lie."""
        return at(self.planes, 0, y % TAPS * self.plane.elements)

    def output(self, row: te.Expr) -> ir.Stmt:
        rows = self.geometry.windows.rows

        def from_top(top: te.Expr) -> ir.Stmt:
            return call(
                self.kernel,
                *(self.planes_of(top + n) for n in range(TAPS)),
                at(self.words, 0, 0),
                self.y.at(row, 0, 0),
            )

        return let("top", row * rows.stride - rows.before, from_top)
