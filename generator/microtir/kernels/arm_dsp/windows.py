"""Convolutions that read windows where they lie: rows are widened, patches are not made.

The rows behind an output row are widened into scratch between their borders.  Values outside the
image are the input's zero point, for which the bias accounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.copying import fill
from microtir.kernels.arm_dsp.outputs import borders_cost, planes_refusal, sink_of
from microtir.kernels.arm_dsp.windows_kernels import Outputs, pack, tile_loads, windows
from microtir.kernels.arm_dsp.windows_rows import PAIR, PIXELS, WidenedRows, keep_rows, widen_row
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import (
    Count,
    Pixel,
    Product,
    Source,
    Tile,
    macro_kernel,
)
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant, requantised
from microtir.kernels.common.refusals import int8_refusal, mixed_refusal
from microtir.kernels.common.requantise import Requantisation
from microtir.kernels.common.statements import at, let, loop, seq, store, when
from microtir.kernels.common.weights import channel_pairs, pack_pairs
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, LayoutKind, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_IMMEDIATE = 4095  # largest offset of a load or store
_STEPS = 160  # of a sum, which are words of the stack
_CHAIN = 8  # the most steps of a row that share words, for they are printed together
_PACKED = 1 << 16  # bytes of all weights and constants, less than
# Bytes of the kernels and of a step.
_CODE, _STEP_CODE, _SINGLE_CODE, _SINGLE_STEP_CODE = 270, 42, 110, 18
_WIDEN_CODE, _KEEP_CODE = 110, 60


@dataclass(frozen=True, slots=True)
class _Form:
    """A layer as the kernels need it."""

    geometry: Geometry
    rows: WidenedRows

    @staticmethod
    def of(node: Node) -> _Form:
        geometry = Geometry.of(node)
        columns, channels = geometry.windows.columns, geometry.image.channels
        rows = WidenedRows(
            geometry.windows.rows.taps,
            columns.taps * channels,
            columns.stride * channels,
            geometry.output.width,
        )
        return _Form(geometry, rows)

    @property
    def first(self) -> int:
        """Return where the image begins in a row."""
        return self.geometry.windows.columns.before * self.geometry.image.channels

    @property
    def copied(self) -> int:
        """Return values of the image in a row."""
        return min(
            self.geometry.copied * self.geometry.image.channels, self.rows.pitch - self.first
        )

    @property
    def kept(self) -> int:
        """Return rows that an output row shares with the next one."""
        rows = self.geometry.windows.rows
        return max(rows.taps - rows.stride, 0) if rows.dilation == 1 else 0

    @property
    def tiled(self) -> int:
        """Return the pixels of a row in whole tiles."""
        return self.rows.width // PIXELS * PIXELS

    @property
    def copies(self) -> tuple[tuple[int, int, int], ...]:
        """Return for each copy of a row: the first value of the image, its place, and how many."""
        if self.rows.copies == 1:
            return ((0, self.first, self.copied),)
        skipped, pitch = int(self.first == 0), self.rows.pitch
        shifted = (skipped, pitch + self.first - 1 + skipped, self.copied - skipped)
        return ((0, self.first, self.copied), shifted)


def _factors(node: Node) -> Requantisation | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, Conv2D) and weights is not None
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return requantised(weights.reshape(len(weights), -1), node, params)


def _packed(node: Node, channel_bytes: int = 1) -> tuple[ir.Buffer, Requantisation] | None:
    """Return the constants that the kernels read, for outputs so many bytes apart."""
    weights, rows, factors = node.inputs[1].data, _Form.of(node).rows, _factors(node)
    assert weights is not None
    matrix = weights.reshape(len(weights), rows.taps, rows.length)
    padded = np.pad(matrix, ((0, 0), (0, 0), (0, rows.length % PAIR)))
    lanes = pack_pairs(padded.reshape(len(weights), rows.steps, PAIR))
    if lanes is None or factors is None:
        return None
    words = pack(
        lanes[:, rows.order()], factors.constants, channel_pairs(len(weights)), channel_bytes
    )
    return constant("words", words), factors


class GemmWindows(Kernel):
    """Windows are read where they lie, in rows that are widened."""

    name = "conv_s8_4x2_dsp"
    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    cycles = 116
    depends_on_calls = True

    def __init__(self, writes: LayoutKind) -> None:
        self.writes = writes

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8 over one image, whole tiles of windows of some steps.
        """
        is_planar = self.writes is not LayoutKind.NHWC
        reason = planes_refusal(Geometry.of(node).output) if is_planar else None
        reason = reason or int8_refusal(node) or mixed_refusal(node)
        if reason is not None:
            return reason
        if not isinstance(node.op, Conv2D):
            return Refusal.OPERATOR
        form = _Form.of(node)
        geometry, rows = form.geometry, form.rows
        if geometry.image.images != 1:
            return Refusal.IMAGES
        if geometry.windows.columns.dilation != 1 or rows.length == 1:
            return Refusal.WINDOWS
        if geometry.output.channels < PAIR:
            return Refusal.FEW_CHANNELS
        fits = (
            (rows.is_short or (rows.turns and rows.steps <= _STEPS))
            and rows.words <= _CHAIN * max(rows.apart, 1)
            and rows.width >= PIXELS
            and form.copied > 1
            and rows.reach(PIXELS) * DType.INT16.bytes <= _IMMEDIATE
            and PIXELS * max(rows.step * DType.INT16.bytes, geometry.output.channels) <= _IMMEDIATE
            and geometry.output.channels * (rows.steps + 9) * 2 < _PACKED
        )
        if not fits:
            return Refusal.SIZES
        return Refusal.FORM if _packed(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the widened rows."""
        rows = _Form.of(node).rows
        return rows.taps * rows.distance * DType.INT16.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M4.

        Calls share what they widen.
        """
        form, factors = _Form.of(node), _factors(node)
        assert factors is not None, "refusal() was asked"
        rows, output, requantised_ = form.rows, form.geometry.output, factors.rescaling.instructions
        new = rows.copies * (form.copied * 11 // 8 + 40)
        kept = form.kept * rows.distance // 6 + 40 if form.kept else 0
        count = -(-output.height // (calls.rows or output.height))
        widened = count * rows.taps * new
        widened += (output.height - count) * ((rows.taps - form.kept) * new + kept)
        looped = 9 + 5 * rows.turns if rows.turns else 0
        tile = tile_loads(rows) + 10 * rows.steps + 8 * requantised_ + 22 + looped
        copied = rows.steps // 4 + 24
        single = rows.steps * 9 // 2 + 2 * requantised_ + 12
        tiles, rest = divmod(rows.width, PIXELS)
        pairs = -(-output.channels // PAIR)
        row = pairs * (tiles * tile + copied + rest * single) + 40
        return widened + output.height * row + borders_cost(output, self.writes)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels."""
        rows = _Form.of(node).rows
        single = _SINGLE_CODE + _SINGLE_STEP_CODE * rows.steps if rows.width % PIXELS else 0
        tile = (_STEP_CODE * rows.steps + 4 * tile_loads(rows)) // max(rows.turns, 1)
        return _CODE + tile + single + _WIDEN_CODE * rows.copies + _KEEP_CODE

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: rows behind an output row, its tiles, then single pixels."""
        sink, planes = sink_of(layer)
        form = _Form.of(layer.node)
        written = Outputs(form.geometry.output.channels, planes)
        packed = _packed(layer.node, written.channel_bytes)
        assert packed is not None, "reject() was asked"
        words, factors = packed

        def kernel(pixels: int) -> KernelDescription:
            return windows(form.rows, pixels, written, factors.rescaling)

        counts = (Count(form.tiled, "tiles"), Count(1, "pixel"))
        tile = Tile(counts, (Product(kernel, (at(words, 0, 0),)),))
        return macro_kernel(layer, name, form.rows.width, _Rows(layer, form), tile, sink)


class _Rows(Source):
    """The rows behind an output row, widened between their borders; some are those of the last."""

    def __init__(self, layer: Layer, form: _Form) -> None:
        self.layer, self.form, self.rows = layer, form, form.rows
        self.x = layer.input_rows(0)
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        size = self.rows.taps * self.rows.distance
        self.scratch = self.widened = ir.Buffer("scratch", (1, size), DType.INT16, alignment=4)
        self.zero_point = layer.node.inputs[0].type.quant.zero_point

    def at(self, pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.widened, 0, self.rows.place(pixel.column))

    def prepare(self, _counts: Sequence[int]) -> ir.Stmt:
        """Emit what lies beside the image in each row, once: rows are widened between it."""
        ends, begin = [], 0
        for number, (_, place, count) in enumerate(self.form.copies, 1):
            ends += [(begin, place), (place + count, number * self.rows.pitch)]
            begin = number * self.rows.pitch
        parts = [(a, b) for a, b in ends if a < b]

        def part(ky: te.Expr, first: int, stop: int) -> ir.Stmt:
            base = ky * self.rows.distance
            return loop("i", first, stop,
                        lambda i: store(self.widened, (0, base + i), self.zero_point))  # fmt: skip

        if not parts:
            return seq()
        return loop("ky", 0, self.rows.taps, lambda ky: seq(*(part(ky, a, b) for a, b in parts)))

    def row(self, row: te.Expr) -> ir.Stmt:
        """Emit the rows behind an output row, less what the row before has widened."""
        window, kept = self.form.geometry.windows.rows, self.form.kept

        def tap(ky: te.Expr) -> ir.Stmt:
            def there(y: te.Expr) -> ir.Stmt:
                if not window.clips(self.form.geometry.output.height):
                    return self.widen(ky, y)
                return when((y >= 0) & (y < window.size), self.widen(ky, y), self.outside(ky))

            return let("y", row * window.stride - window.before + ky * window.dilation, there)

        first = te.as_expr(0, DType.INT32)
        if kept:
            first = te.select(row == self.layer.y0, first, kept)
        return seq(self.keep(row) if kept else seq(), loop("ky", first, self.rows.taps, tap))

    def keep(self, row: te.Expr) -> ir.Stmt:
        """Emit what the row before has widened, behind the first one of a call."""
        stride = self.form.geometry.windows.rows.stride
        return when(row > self.layer.y0, call(keep_rows(self.rows, stride), self.target(0, 0)))

    def widen(self, ky: te.Expr, y: te.Expr) -> ir.Stmt:
        """Emit a row of the image into its place among the rows of the window."""
        channels = self.form.geometry.image.channels
        return seq(*(
            call(
                widen_row(count, at_words=place % PAIR == 0),
                self.x.at(y, first // channels, first % channels),
                self.target(ky, place),
            )
            for first, place, count in self.form.copies
        ))  # fmt: skip

    def outside(self, ky: te.Expr) -> ir.Stmt:
        """Emit the zero point in place of a row."""
        return seq(*(
            call(fill(count, self.zero_point, DType.INT16), self.target(ky, place))
            for _, place, count in self.form.copies
        ))  # fmt: skip

    def target(self, ky: te.ExprLike, place: int) -> ir.BufferArgument:
        return at(self.widened, 0, te.as_expr(ky, DType.INT32) * self.rows.distance + place)
