"""Depthwise convolutions that read rows where they lie: in rings, and without filled borders.

The kernel is given each row of a window.  Columns outside the image are constants of the kernels
for the windows that reach there; a row outside of it is one of constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.depthwise import arrange, factors
from microtir.kernels.arm_dsp.depthwise_rows_kernels import Taps, depthwise_rows
from microtir.kernels.common.bordered_rows import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant
from microtir.kernels.common.refusals import depthwise_refusal
from microtir.kernels.common.statements import at, let, loop, seq, when
from microtir.kernels.common.weights import QUAD, channel_quads
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir
from microtir.tir.dtype import DType

_IMMEDIATE = 4095  # largest offset of a load
_TAPS = 64  # they are all unrolled; more make too much code
_ROWS = 16  # each is an argument
_LARGEST = 0xFFFF  # what MOVW loads


@dataclass(frozen=True, slots=True)
class _Call:
    """The same windows at columns first, first + step and so on, `count` times."""

    taps: Taps
    first: int
    step: int
    count: int


def _row_calls(geometry: Geometry) -> list[_Call]:
    """Return how an output row is computed.

    Two pixels at a time, and the last one of an odd width.
    """
    rows, columns = geometry.windows.rows, geometry.windows.columns
    found: list[_Call] = []
    for first in range(0, geometry.output.width, 2):
        pixels = min(2, geometry.output.width - first)
        start = first * columns.stride - columns.before
        places = (pixels - 1) * columns.stride + (columns.taps - 1) * columns.dilation + 1
        left, right = max(-start, 0), max(start + places - columns.size, 0)
        taps = Taps(
            pixels, rows.taps, columns.taps, columns.dilation, columns.stride,
            geometry.image.channels, left, right,
        )  # fmt: skip
        if found and found[-1].taps == taps and not taps.clips:
            last = found.pop()
            found.append(_Call(taps, last.first, 2, last.count + 1))
        else:
            found.append(_Call(taps, first, 2, 1))
    return found


def _has_short_borders(geometry: Geometry) -> bool:
    """Return whether at most one row of a window, first or last, lies outside the image."""
    rows = geometry.windows.rows
    tops = (row * rows.stride - rows.before for row in range(geometry.output.height))
    taps = range(0, rows.taps * rows.dilation, rows.dilation)
    outside = ([n for n in taps if not 0 <= top + n < rows.size] for top in tops)
    return all(o in ([], [taps[0]], [taps[-1]]) for o in outside)


class DepthwiseRows(Kernel):
    """Four channels a word from rows where they lie, without scratch."""

    name = "depthwise_rows"
    operators = (DepthwiseConv2D,)
    needs = Feature.DSP
    cycles = 141

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8, one image, one output per channel, short windows."""
        reason = depthwise_refusal(node)
        if reason is not None:
            return reason
        geometry = Geometry.of(node)
        channels = geometry.image.channels
        if channels < QUAD:
            return Refusal.FEW_CHANNELS
        if not _has_short_borders(geometry):
            return Refusal.WINDOWS
        calls = _row_calls(geometry)
        if not all(c.taps.inside for c in calls):
            return Refusal.WINDOWS
        in_reach = (
            geometry.windows.rows.taps <= _ROWS
            and all(c.taps.count <= _TAPS and c.taps.reach <= _IMMEDIATE for c in calls)
            and 2 * channels <= _IMMEDIATE
        )
        if not in_reach:
            return Refusal.SIZES
        return Refusal.FORM if factors(node) is None else None

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions for any rows of a call, by counts on the Cortex-M4."""
        geometry, found = Geometry.of(node), factors(node)
        assert found is not None, "refusal() was asked"
        quads = -(-geometry.image.channels // QUAD)
        return geometry.output.height * sum(
            c.count * (quads * _turn(c.taps, found.rescaling.instructions) + 35)
            for c in _row_calls(geometry)
        )

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        geometry, found = Geometry.of(node), factors(node)
        assert found is not None, "refusal() was asked"
        kernels = dict.fromkeys(c.taps for c in _row_calls(geometry))
        return sum(60 + 4 * _turn(taps, found.rescaling.instructions) for taps in kernels)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: row by row, two pixels at a time."""
        return _Emitter(layer).function(name)


def _turn(taps: Taps, requantising: int) -> int:
    """Return the instructions of a kernel for four channels."""
    used = taps.uses()
    inside = len(taps.inside)
    row = 2 + 3 * inside + (len(used) - inside) + 5 * sum(map(len, used.values()))
    return taps.rows * row + QUAD * taps.pixels * (requantising + 1) + 13


Rows = Sequence[Callable[[te.Expr], ir.BufferArgument]]
"""The rows of a window: each gives a pointer to a column."""


class _Emitter:
    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.geometry = geometry = Geometry.of(layer.node)
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        self.calls = _row_calls(geometry)
        found = factors(layer.node)
        assert found is not None, "refusal() was asked"
        self.rescaling = found.rescaling
        order = channel_quads(geometry.image.channels)
        self.constants = constant("constants", found.constants[order])
        self.weights = constant("weights", arrange(layer.data(1), order))
        self.zero_point = layer.node.inputs[0].type.quant.zero_point
        longest = max(c.taps.reach for c in self.calls)
        self.outside = constant("outside", np.full(longest, self.zero_point, np.int8))

    def function(self, name: str) -> ir.PrimFunc:
        rows = self.geometry.windows.rows
        body = loop(
            "row", self.layer.y0, self.layer.y1,
            lambda row: let("top", row * rows.stride - rows.before, lambda y: self.output(row, y)),
        )  # fmt: skip
        return self.layer.function(name, None, body)

    def output(self, row: te.Expr, top: te.Expr) -> ir.Stmt:
        """Emit an output row from the rows at `top`, the first or last of them perhaps outside."""
        window = self.geometry.windows.rows
        taps = [self.image_row(top + n * window.dilation) for n in range(window.taps)]
        inside = self.pixels(row, taps)
        if not window.clips(self.geometry.output.height):
            return inside
        outside = [lambda _column: at(self.outside, 0)]
        reach = (window.taps - 1) * window.dilation
        first, last = (
            self.pixels(row, [*outside, *taps[1:]]),
            self.pixels(row, [*taps[:-1], *outside]),
        )
        below = when(top + reach >= window.size, last, inside)
        return when(top < 0, first, below) if window.before else below

    def image_row(self, y: te.Expr) -> Callable[[te.Expr], ir.BufferArgument]:
        return lambda column: self.x.at(y, column, 0)

    def pixels(self, row: te.Expr, rows: Rows) -> ir.Stmt:
        """Emit all pixels of an output row."""
        columns = self.geometry.windows.columns

        def some(c: _Call, column: te.Expr) -> ir.Stmt:
            start = column * columns.stride + (c.taps.inside[0] - columns.before)
            zero_point = self.zero_point if c.taps.clips else 0
            return call(
                depthwise_rows(c.taps, zero_point, self.rescaling),
                *(place(start) for place in rows),
                at(self.weights, 0, 0, 0),
                at(self.constants, 0, 0),
                self.y.at(row, column, 0),
            )

        def all_of(c: _Call) -> ir.Stmt:
            if c.count == 1:
                return some(c, te.as_expr(c.first, DType.INT32))
            return loop("pair", 0, c.count, lambda n: some(c, n * c.step + c.first))

        return seq(*map(all_of, self.calls))
