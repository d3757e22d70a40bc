"""Depthwise convolutions 3x3 over planes, which their producer writes, or which are made here.

Where rows come as NHWC each is split into its channels once: the planes of three rows are kept in
scratch, one of them replaced for every output row.  Values outside the image are the input's zero
point, for which the bias accounts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import depthwise as words
from microtir.kernels.arm_dsp.copying import fill
from microtir.kernels.arm_dsp.planes_kernels import (
    OUTPUTS,
    TAPS,
    Plane,
    depthwise,
    instructions,
    split,
    words_of,
)
from microtir.kernels.common.bordered_rows import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant
from microtir.kernels.common.refusals import depthwise_refusal
from microtir.kernels.common.statements import at, let, loop, seq, when
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, LayoutKind, Planes, Refusal
from microtir.tir import ir
from microtir.tir.dtype import DType

_IMMEDIATE = 4095  # largest offset of a load or store
_STRIDES = (1, 2)
# Bytes of the kernels beside their turns.
_SPLIT_CODE, _KERNEL_CODE = 190, 80


def _plane(geometry: Geometry, dtype: DType = DType.INT16) -> Plane:
    columns, channels = geometry.windows.columns, geometry.image.channels
    return Plane(
        channels, geometry.output.width, columns.stride, columns.before, geometry.copied, dtype
    )


class DepthwisePlanes(Kernel):
    """3x3 taps, two columns a word, from rows that it splits into planes of channels."""

    name = "depthwise_planes"
    operators = (DepthwiseConv2D,)
    needs = Feature.DSP
    cycles = 111
    depends_on_calls = True

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8, one image, one output a channel, 3x3 taps, whole words.
        """
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

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the planes of three rows."""
        return TAPS * _plane(Geometry.of(node)).elements * DType.INT16.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M4.

        Rows of a call share planes.
        """
        geometry = Geometry.of(node)
        rows, output = geometry.windows.rows, geometry.output
        if not calls.rows:
            split_rows = min((output.height - 1) * rows.stride + TAPS, geometry.image.height)
            return split_rows * _split_cost(node) + output.height * _row_cost(node)
        count = -(-output.height // calls.rows)
        split_rows = TAPS + (calls.rows - 1) * min(rows.stride, TAPS)
        return count * split_rows * _split_cost(node) + output.height * _row_cost(node)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        return _SPLIT_CODE + _code_bytes(_plane(Geometry.of(node)))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: new rows into planes, then the kernel, row by row."""
        return _Split(layer).function(name)


def _split_cost(node: Node) -> int:
    """Return the instructions of splitting one row."""
    plane = _plane(Geometry.of(node))
    return plane.elements * 7 // 4 + plane.channels * 2 + 30


def _row_cost(node: Node) -> int:
    """Return the instructions of one output row."""
    return instructions(_plane(Geometry.of(node)))


def _code_bytes(plane: Plane) -> int:
    """Return the bytes of the kernel; other layers may use the same."""
    turns, rest = divmod(plane.outputs, OUTPUTS)
    return _KERNEL_CODE + 260 * (turns > 0) + (70 + 45 * rest if rest else 0)


class DepthwisePlanar(DepthwisePlanes):
    """The same over planes, of elements of a type, that the producer has written."""

    depends_on_calls = False

    def __init__(self, reads: LayoutKind, dtype: DType) -> None:
        self.reads, self.dtype = reads, dtype

    def planes(self, node: Node) -> Planes:
        """Return how the input is to lie."""
        plane = self._plane(node)
        return Planes(plane.before, plane.columns)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: as above, and rows beyond the image."""
        reason = super().reject(node)
        if reason is not None:
            return reason
        geometry, plane = Geometry.of(node), self._plane(node)
        rows = geometry.windows.rows
        last = (geometry.output.height - 1) * rows.stride - rows.before + TAPS - 1
        if rows.before > 1 or last > rows.size or rows.size < TAPS - 1:
            return Refusal.WINDOWS
        return None if plane.before + geometry.image.width <= plane.columns else Refusal.SIZES

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of a row outside the image."""
        geometry = Geometry.of(node)
        clips = geometry.windows.rows.clips(geometry.output.height)
        return self._plane(node).elements * self.dtype.bytes if clips else 0

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions of all rows, whatever the calls."""
        outside = self.scratch_bytes(node, calls)
        return outside + Geometry.of(node).output.height * (instructions(self._plane(node)) + 10)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernel; other layers may use the same."""
        return _code_bytes(self._plane(node))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: the kernel, and planes for rows outside the image."""
        return _Planar(layer).function(name)

    def _plane(self, node: Node) -> Plane:
        return _plane(Geometry.of(node), self.dtype)


class _Emitter:
    """What both ways have in common."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.geometry = Geometry.of(layer.node)
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        is_planar = self.x.layout.planes is not None
        self.plane = _plane(self.geometry, self.x.buffer.dtype if is_planar else DType.INT16)
        factors = words.factors(layer.node)
        assert factors is not None, "refusal() was asked"
        self.kernel = depthwise(self.plane, factors.rescaling)
        taps = layer.data(1)[0].astype(np.int8)
        self.words = constant("words", words_of(self.plane).pack(taps, factors.constants))
        self.zero_point = layer.node.inputs[0].type.quant.zero_point

    def row_of(self, row: te.Expr, taps: Sequence[ir.BufferArgument]) -> ir.Stmt:
        """Emit an output row from the planes of the rows behind it."""
        return call(
            self.kernel,
            *taps,
            at(self.words, 0, 0),
            self.y.at(row, 0, 0),
        )

    def scratch(self, rows: int) -> ir.Buffer:
        """Return planes of some rows.

        One row, so that whoever follows rows of buffers sees one span.
        """
        shape = (1, rows * self.plane.elements)
        return ir.Buffer("scratch", shape, self.plane.dtype, alignment=4)


class _Split(_Emitter):
    """Rows come as NHWC."""

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.planes = self.scratch(TAPS)

    def function(self, name: str) -> ir.PrimFunc:
        return self.layer.function(name, self.planes, loop(
            "row", self.layer.y0, self.layer.y1,
            lambda row: seq(self.fetch(row), self.output(row)),
        ))  # fmt: skip

    def fetch(self, row: te.Expr) -> ir.Stmt:
        """Emit the rows behind an output row that the one before did not have."""
        rows = self.geometry.windows.rows
        top = row * rows.stride - rows.before
        kept = max(TAPS - rows.stride, 0)
        first = top + te.select(row == self.layer.y0, te.as_expr(0, DType.INT32), kept)
        return loop("y_in", first, top + TAPS, self.split)

    def split(self, y: te.Expr) -> ir.Stmt:
        """Emit one row of the image, or what stands for one outside of it."""
        rows, target = self.geometry.windows.rows, self.planes_of(y)
        inside = call(split(self.plane, self.zero_point), self.x.at(y, 0, 0), target)
        if not rows.clips(self.geometry.output.height):
            return inside
        outside = call(fill(self.plane.elements, self.zero_point, DType.INT16), target)
        return when((y >= 0) & (y < rows.size), inside, outside)

    def planes_of(self, y: te.Expr) -> ir.BufferArgument:
        """Return where the planes of a row lie."""
        return at(self.planes, 0, y % TAPS * self.plane.elements)

    def output(self, row: te.Expr) -> ir.Stmt:
        rows = self.geometry.windows.rows
        top = row * rows.stride - rows.before
        return let("top", top, lambda y: self.row_of(
            row, [self.planes_of(y + n) for n in range(TAPS)]
        ))  # fmt: skip


class _Planar(_Emitter):
    """Rows come as planes."""

    def function(self, name: str) -> ir.PrimFunc:
        rows = self.geometry.windows.rows
        clips = rows.clips(self.geometry.output.height)
        outside = self.scratch(1) if clips else None
        return self.layer.function(name, outside, loop(
            "row", self.layer.y0, self.layer.y1,
            lambda row: let(
                "top", row * rows.stride - rows.before, lambda top: self.output(row, top, outside)
            ),
        ))  # fmt: skip

    def output(self, row: te.Expr, top: te.Expr, outside: ir.Buffer | None) -> ir.Stmt:
        taps = [self.x.row(top + n) for n in range(TAPS)]
        inside = self.row_of(row, taps)
        if outside is None:
            return inside
        zeros = at(outside, 0, 0)
        fill_it = call(fill(self.plane.elements, self.zero_point, self.plane.dtype), zeros)
        above, below = top < 0, top + TAPS > self.geometry.windows.rows.size
        first, last = self.row_of(row, [zeros, *taps[1:]]), self.row_of(row, [*taps[:-1], zeros])
        return seq(when(above | below, fill_it), when(above, first, when(below, last, inside)))
