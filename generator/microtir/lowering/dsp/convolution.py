"""Convolutions as matrix products: patches of 4 pixels times packed weights.

Any kernel size, stride, dilation and padding.  Values outside the image are the input's zero
point, so that the full sum of weights folds into the bias; only patches that leave the image are
gathered pixel by pixel.  A depthwise convolution of one input channel is a convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir import te
from microtir.graph.ir import Node
from microtir.graph.ops import Conv2D, DepthwiseConv2D
from microtir.graph.quantization import conv_params
from microtir.lowering.convolution import windows_of
from microtir.lowering.dsp.code import at, let, load, loop, seq, store, when
from microtir.lowering.dsp.gemm_kernels import LANES, PIXELS, gemm
from microtir.lowering.dsp.linear import PackedLinear, constant, pack_linear
from microtir.lowering.dsp.micro_kernel import COMPACT, FAST, Unroll, call, printed, turns
from microtir.lowering.dsp.patch import QUAD, Segments, widen
from microtir.lowering.layer import Extents, Layer
from microtir.lowering.refusals import int8_refusal, mixed_refusal
from microtir.lowering.window import Windows
from microtir.plan.ir import Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_IMMEDIATE = 4095  # largest offset of a load or store


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes of a convolution as the loops need them."""

    windows: Windows
    image: Extents
    output: Extents
    segments: Segments

    @staticmethod
    def of(node: Node) -> Geometry:
        windows, image = windows_of(node), Extents.of(node.inputs[0].type)
        rows, columns = windows.rows.taps, windows.columns.taps
        joined = columns == 1 or windows.columns.dilation == 1
        count, length = (rows, columns) if joined else (rows * columns, 1)
        segments = Segments(count, length * image.channels)
        return Geometry(windows, image, Extents.of(node.output.type), segments)

    @property
    def per_row(self) -> int:
        """Segments of one kernel row."""
        return self.segments.count // self.windows.rows.taps

    @property
    def pixel_stride(self) -> int:
        """Bytes between the inputs of neighbouring output pixels."""
        return self.windows.columns.stride * self.image.channels

    @property
    def is_pointwise(self) -> bool:
        """Whether output pixel n needs input pixel n and nothing else."""
        rows, columns = self.windows.rows, self.windows.columns
        same = (rows.taps, columns.taps, rows.stride, columns.stride) == (1, 1, 1, 1)
        return same and not self.windows.clip(self.output)


def _packed(node: Node) -> PackedLinear | None:
    op = node.op
    assert isinstance(op, Conv2D | DepthwiseConv2D)
    weights, segments = node.inputs[1].data, Geometry.of(node).segments
    assert weights is not None
    if isinstance(op, DepthwiseConv2D):
        weights = weights.transpose(3, 1, 2, 0)
    matrix = weights.reshape(len(weights), segments.count, segments.length)
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return pack_linear(matrix.reshape(len(matrix), -1), segments.arrange(matrix), node, params)


def refusal(node: Node) -> Refusal | None:
    """What speaks against it: int8 over one image, weights and factors that fit the packed form."""
    reason = int8_refusal(node) or mixed_refusal(node)
    if reason is not None:
        return reason
    geometry = Geometry.of(node)
    if geometry.image.images != 1 and not geometry.is_pointwise:
        return Refusal.IMAGES
    channels, last = geometry.output.channels, PIXELS - 1
    in_reach = last * max(geometry.pixel_stride + 1, channels + 1) < _IMMEDIATE
    if channels == 1:
        return Refusal.FEW_CHANNELS
    if not in_reach:
        return Refusal.SIZES
    return Refusal.FORM if _packed(node) is None else None


def scratch_bytes(node: Node) -> int:
    """Of one patch."""
    return Geometry.of(node).segments.elements * DType.INT16.bytes


def cost(node: Node, unroll: Unroll = FAST) -> int:
    """Instructions of all rows in one call, from counts of the emulated Cortex-M4."""
    geometry = Geometry.of(node)
    output = geometry.output
    lines = 1 if geometry.is_pointwise else output.images * output.height
    pixels = output.images * output.height * output.width
    return lines * _line_cost(geometry, pixels // lines, unroll)


def row_cost(node: Node, unroll: Unroll = FAST) -> int:
    """Instructions where every row is a call of its own."""
    geometry = Geometry.of(node)
    rows = geometry.output.images * geometry.output.height
    return rows * _line_cost(geometry, geometry.output.width, unroll)


def _line_cost(geometry: Geometry, pixels: int, unroll: Unroll) -> int:
    """Instructions for pixels that blocks may span: 4 by 4 pixels, then one by one."""
    channels, steps = geometry.output.channels, geometry.segments.steps
    blocks, singles = divmod(pixels, PIXELS)
    looped = 3 * turns(steps, unroll)
    # For two channels: 12 a step and 58 beside them, or 5 and 26 for a single pixel.
    block = (12 * steps + looped + 58) * channels // 2 + 16 * steps + 80
    single = (5 * steps + looped + 26) * channels // 2 + 8 * steps + 40
    return blocks * block + singles * single


def code_bytes(node: Node, unroll: Unroll = FAST) -> int:
    """Of the kernels for 4 pixels and for one; other layers may use the same."""
    geometry = Geometry.of(node)
    steps = printed(geometry.segments.steps, unroll)
    single = 270 + 18 * steps if _has_single_pixels(geometry) else 0
    return 330 + 46 * steps + single


def _has_single_pixels(geometry: Geometry) -> bool:
    width = geometry.output.width
    flat = geometry.is_pointwise
    return (width * geometry.output.height if flat else width) % PIXELS != 0


def emit(layer: Layer, name: str, unroll: Unroll = FAST) -> ir.PrimFunc:
    """The layer function: patches in `scratch`, products of 4 pixels, then of single ones."""
    node = layer.node
    packed = _packed(node)
    assert packed is not None, "refusal() was asked"
    return _Emitter(layer, Geometry.of(node), packed, unroll).function(name)


def emit_compact(layer: Layer, name: str) -> ir.PrimFunc:
    """The same with less code."""
    return emit(layer, name, COMPACT)


def compact_cost(node: Node) -> int:
    """Instructions of the compact form in one call."""
    return cost(node, COMPACT)


def compact_row_cost(node: Node) -> int:
    """Instructions of the compact form in a call for each row."""
    return row_cost(node, COMPACT)


def compact_code_bytes(node: Node) -> int:
    """Code of the compact form."""
    return code_bytes(node, COMPACT)


class _Emitter:
    def __init__(
        self, layer: Layer, geometry: Geometry, packed: PackedLinear, unroll: Unroll
    ) -> None:
        self.unroll = unroll
        self.layer = layer
        self.geometry = geometry
        self.packed = packed
        self.constants = constant("constants", packed.paired_constants())
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        self.flat = geometry.is_pointwise and self.x.is_whole and self.y.is_whole
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        shape = (1, geometry.segments.elements)
        self.patch = ir.Buffer("scratch", shape, DType.INT16, alignment=4)
        self.zero_point = layer.node.inputs[0].type.quant.zero_point

    def function(self, name: str) -> ir.PrimFunc:
        body = seq(self.clear_gap(), self.flat_pixels() if self.flat else self.rows())
        return self.layer.function(name, self.patch, body)

    def clear_gap(self) -> ir.Stmt:
        """The lane without a partner meets weights of 0; it only must hold some number."""
        segments = self.geometry.segments
        if not segments.has_gap:
            return seq()
        gap = segments.tail_index(te.as_expr(segments.count, DType.INT32))

        def pixel(p: te.Expr) -> ir.Stmt:
            first = gap + p * 2
            strides = (n * segments.tail_stride for n in range(segments.tails))
            return seq(*(store(self.patch, (0, first + stride), 0) for stride in strides))

        return loop("pixel", 0, PIXELS, pixel)

    # --- loops ---

    def flat_pixels(self) -> ir.Stmt:
        """All pixels of the row range as one line: rows of any width fill whole blocks."""
        width, layer = self.geometry.output.width, self.layer
        first, pixels = layer.y0 * width, (layer.y1 - layer.y0) * width

        def some(pixel: te.Expr, count: int) -> ir.Stmt:
            row, column = pixel // width, pixel % width
            return seq(
                self.widen(count, self.x.at(row, column, 0), te.as_expr(0, DType.INT32), 0),
                self.product(count, self.y.at(row, column, 0)),
            )

        def both(blocks: te.Expr) -> ir.Stmt:
            whole = loop("block", 0, blocks, lambda b: some(first + b * PIXELS, PIXELS))
            if width % PIXELS == 0:
                return whole
            rest = loop("pixel", first + blocks * PIXELS, first + pixels, lambda p: some(p, 1))
            return seq(whole, rest)

        # An empty range may be given with y1 < y0, which must not reach rows before y0.
        return let("blocks", te.maximum(pixels, 0) // PIXELS, both)

    def rows(self) -> ir.Stmt:
        width = self.geometry.output.width
        blocks, whole = width // PIXELS, width // PIXELS * PIXELS

        def some(row: te.Expr, column: te.Expr, count: int) -> ir.Stmt:
            return seq(
                self.gather(row, column, count),
                self.product(count, self.y.at(row, column, 0)),
            )

        return loop(
            "row", self.layer.y0, self.layer.y1,
            lambda row: seq(
                loop("block", 0, blocks, lambda b: some(row, b * PIXELS, PIXELS)),
                loop("col", whole, width, lambda column: some(row, column, 1)),
            ),
        )  # fmt: skip

    def product(self, pixels: int, output: ir.BufferArgument) -> ir.Stmt:
        """The micro-kernel for all channels of some pixels."""
        return call(
            self.kernel(pixels),
            at(self.patch, 0, 0),
            at(self.packed.weights, 0, 0, 0),
            at(self.constants, 0, 0),
            output,
        )

    def kernel(self, pixels: int) -> KernelDescription:
        steps, channels = self.geometry.segments.steps, self.geometry.output.channels
        return gemm(pixels, steps, channels, self.packed.rescaling, self.unroll)

    # --- patches ---

    def widen(self, pixels: int, source: ir.BufferArgument, segment: te.Expr, lane: te.ExprLike
              ) -> ir.Stmt:  # fmt: skip
        """One segment, from `source` on, into the patch."""
        segments, offset = self.geometry.segments, te.as_expr(lane, DType.INT32) * 2
        args = [source, at(self.patch, 0, segments.quad_index(segment) + offset)]
        if segments.tails:
            args.append(at(self.patch, 0, segments.tail_index(segment) + offset))
        return call(widen(pixels, segments, self.geometry.pixel_stride), *args)

    def gather(self, row: te.Expr, column: te.Expr, pixels: int) -> ir.Stmt:
        """The patch of `pixels` neighbouring output pixels."""
        rows, columns = self.geometry.windows.rows, self.geometry.windows.columns
        left = column * columns.stride - columns.before

        def kernel_row(ky: te.Expr) -> ir.Stmt:
            def inside(y: te.Expr) -> ir.Stmt:
                there = (y >= 0) & (y < rows.size)
                fill = loop("pixel", 0, pixels, lambda lane: self.fill_row(ky, lane))
                return when(there, self.gather_row(ky, y, left, pixels), fill)

            return let("y", row * rows.stride - rows.before + ky * rows.dilation, inside)

        return loop("ky", 0, rows.taps, kernel_row)

    def gather_row(self, ky: te.Expr, y: te.Expr, left: te.Expr, pixels: int) -> ir.Stmt:
        """One kernel row of some pixels: at once where none leaves the image, else one by one."""
        columns = self.geometry.windows.columns
        if pixels == 1:
            return self.gather_pixel(ky, y, left, te.as_expr(0, DType.INT32))
        reach = (pixels - 1) * columns.stride
        return when(
            self.is_inside(left, reach),
            self.segments_of(ky, y, left, pixels, 0),
            loop(
                "pixel", 0, pixels,
                lambda lane: self.gather_pixel(ky, y, left + lane * columns.stride, lane),
            ),
        )  # fmt: skip

    def is_inside(self, left: te.Expr, reach: int) -> te.Expr:
        columns = self.geometry.windows.columns
        last = (columns.taps - 1) * columns.dilation + reach
        return (left >= 0) & (left + last < columns.size)

    def segments_of(
        self, ky: te.Expr, y: te.Expr, left: te.Expr, pixels: int, lane: te.ExprLike
    ) -> ir.Stmt:
        """All segments of a kernel row that lies inside the image."""
        count, dilation = self.geometry.per_row, self.geometry.windows.columns.dilation
        return loop(
            "part", 0, count,
            lambda n: self.widen(
                pixels, self.x.at(y, left + n * dilation, 0), ky * count + n, lane
            ),
        )  # fmt: skip

    def gather_pixel(self, ky: te.Expr, y: te.Expr, left: te.Expr, lane: te.Expr) -> ir.Stmt:
        columns, channels = self.geometry.windows.columns, self.geometry.image.channels

        def tap(kx: te.Expr) -> ir.Stmt:
            def inside(column: te.Expr) -> ir.Stmt:
                there = (column >= 0) & (column < columns.size)
                fill = self.fill_tap(ky, kx, lane)
                if channels % QUAD:
                    copy = self.copy_tap(ky, kx, lane, y, column)
                else:
                    single = widen(1, Segments(1, channels), 0)
                    source = self.x.at(y, column, 0)
                    copy = call(single, source, at(self.patch, 0, self.tap_index(ky, kx, lane)))
                return when(there, copy, fill)

            return let("x_col", left + kx * columns.dilation, inside)

        return when(
            self.is_inside(left, 0),
            self.segments_of(ky, y, left, 1, lane),
            loop("kx", 0, columns.taps, tap),
        )

    def tap_index(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> te.Expr:
        """Where a tap of whole quads begins in the patch."""
        steps = self.geometry.image.channels // 2
        tap = ky * self.geometry.windows.columns.taps + kx
        return tap * (steps * LANES) + lane * 2

    def fill_row(self, ky: te.Expr, lane: te.Expr) -> ir.Stmt:
        taps = self.geometry.windows.columns.taps
        return loop("kx", 0, taps, lambda kx: self.fill_tap(ky, kx, lane))

    def fill_tap(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        """A tap outside the image: the zero point, for which the bias accounts."""
        channels, zero = self.geometry.image.channels, self.zero_point
        if channels % QUAD:
            return self.each_value(ky, kx, lane, lambda _: te.as_expr(zero, DType.INT16))
        base = self.tap_index(ky, kx, lane)
        return loop(
            "step", 0, channels // 2,
            lambda step: seq(
                *(store(self.patch, (0, base + step * LANES + n), zero) for n in range(2))
            ),
        )  # fmt: skip

    def copy_tap(
        self, ky: te.Expr, kx: te.Expr, lane: te.Expr, y: te.Expr, column: te.Expr
    ) -> ir.Stmt:
        """A tap whose channels are not whole quads, value by value."""

        def value(channel: te.Expr) -> te.Expr:
            stored = load(self.x.buffer, self.x.slot(y), column, channel)
            return te.cast(DType.INT16, stored)

        return self.each_value(ky, kx, lane, value)

    def each_value(
        self, ky: te.Expr, kx: te.Expr, lane: te.Expr, value: Callable[[te.Expr], te.Expr]
    ) -> ir.Stmt:
        """Stores `value(channel)` of one tap where its segment has it."""
        segments, channels = self.geometry.segments, self.geometry.image.channels
        joined = self.geometry.per_row == 1
        segment = ky if joined else ky * self.geometry.per_row + kx
        split = segments.quads * QUAD

        def put(channel: te.Expr) -> ir.Stmt:
            def place(n: te.Expr) -> ir.Stmt:
                quad = n // QUAD * (2 * LANES) + n % 2 * LANES + n % QUAD // 2
                front = segments.quad_index(segment) + quad
                back = segments.tail_index(segment) + (n - split) * segments.tail_stride
                behind = store(self.patch, (0, back + lane * 2), value(channel))
                if split == 0:
                    return behind
                before = store(self.patch, (0, front + lane * 2), value(channel))
                return when(n < split, before, behind) if segments.tails else before

            return let("n", kx * channels + channel if joined else channel, place)

        return loop("channel", 0, channels, put)
