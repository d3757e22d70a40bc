"""Convolutions as matrix products: two pixels by four channels.

Where the values behind a pixel follow each other in memory the kernel reads them there; otherwise
windows are copied into scratch first.  Values outside the image are the input's zero point, so
that the full sum of weights folds into the bias.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_mve import copying, float_rescaling, linear, window_moves
from microtir.kernels.arm_mve.gemm_kernels import PIXELS, code_size, gemm, instructions
from microtir.kernels.arm_mve.requantise import LANES
from microtir.kernels.common import counted, gather, phase_kernel, refusals
from microtir.kernels.common.bordered_rows import DirectRows
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import (
    Count,
    Nhwc,
    Pixel,
    Product,
    Sink,
    Source,
    Tile,
    all_blocks,
    pixel_loops,
)
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.phases import Phase, SpreadPixels
from microtir.kernels.common.statements import at, each, let, load, seq, store, when
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import IN_ONE_CALL, Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_IMMEDIATE = 4095  # largest offset of ADDW
_LARGEST = 0xFFFF  # what MOVW loads
_COUNTS = Count(PIXELS, "pair"), Count(1, "pixel")


def _is_run(geometry: Geometry) -> bool:
    """Return whether the values behind every pixel follow each other in the input."""
    return geometry.runs == 1 and not geometry.windows.clip(geometry.output)


class Gemm(float_rescaling.FloatRescaling, counted.Counted, phase_kernel.PhaseKernel):
    """Two pixels by four channels, sixteen products an instruction, or eight of int16.

    Args:
        name: of the kernel.
        dtype: of inputs and outputs.
        wide: whether sums have 64 bits.
    """

    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.MVE
    cycles = 156
    measured_on, family = "cortex-m55", "conv_2x4_mve"
    depends_on_calls = has_wide_weights = True

    def __init__(self, name: str, dtype: DType, *, wide: bool = False) -> None:
        self.name, self.dtype, self.has_wide_sums = name, dtype, wide
        self.rescales_in_float = dtype is DType.INT8
        self._layers = linear.LinearLayers(lambda node: Geometry.of(node).groups, wide=wide)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: a type, several images, factors that do not fit."""
        geometry = Geometry.of(node)
        reason = refusals.type_refusal(node, self.dtype)
        if reason is None and geometry.groups == 1:
            reason = refusals.mixed_refusal(node)
        if reason is not None:
            return reason
        if geometry.image.images != 1 and not geometry.is_pointwise:
            return Refusal.IMAGES
        size = self.dtype.bytes
        fits = geometry.output.channels * geometry.groups * size <= _IMMEDIATE
        row = geometry.direct_step
        sizes = (
            geometry.values > 0
            and max(geometry.pixel_stride, geometry.values, row) <= _LARGEST // size
        )
        if not (fits and sizes):
            return Refusal.SIZES
        return Refusal.FORM if self._layers.find(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        geometry = Geometry.of(node)
        return 0 if _is_run(geometry) else PIXELS * geometry.values * self.dtype.bytes

    def printed(self, node: Node, calls: Calls) -> int:
        """Return the instructions of products and of moves; pairs do not span calls."""
        geometry, form = Geometry.of(node), self._layers.form(node)
        less = self._layers.less(node)
        products = sum(
            times * instructions(pixels, geometry.values, geometry.output.channels, form, less)
            for times, pixels in self._blocks(geometry, calls)
        )
        moves = window_moves.printed_moves(geometry, self._moves(geometry, calls), self.dtype)
        return geometry.groups * (products + moves)

    def around(self, node: Node, calls: Calls) -> Mapping[str, int]:
        """Return the calls of the layer, of products and of moves, and the rows."""
        geometry = Geometry.of(node)
        rows = geometry.output.images * geometry.output.height
        blocks = Counter[int]()
        for times, pixels in self._blocks(geometry, calls):
            blocks[pixels] += times
        of_group = {
            "line": 0 if geometry.is_pointwise else rows,
            "pair": blocks[PIXELS],
            "pixel": blocks[1],
            **window_moves.code_around(self._moves(geometry, calls)),
        }
        layer = {"layer": -(-rows // calls.rows) if calls.rows else 1}
        return layer | {kind: geometry.groups * times for kind, times in of_group.items()}

    def _blocks(self, geometry: Geometry, calls: Calls) -> list[tuple[int, int]]:
        spans_rows = geometry.is_pointwise and not calls.rows
        return all_blocks(geometry.output, calls, _COUNTS, spans_rows=spans_rows)

    def _moves(self, geometry: Geometry, calls: Calls) -> window_moves.Moves:
        if _is_run(geometry):
            return {}
        return window_moves.moves(
            geometry, _COUNTS, self.dtype, is_whole=calls.alone or not calls.rows
        )

    def code_bytes(self, node: Node) -> int:
        """Return bytes of the kernels for two pixels and for one; other layers may use the same."""
        geometry = Geometry.of(node)
        flat = geometry.is_pointwise
        width = geometry.output.width * (geometry.output.height if flat else 1)
        values, form = geometry.values, self._layers.form(node)
        pair, single = (
            code_size(n, values, geometry.output.channels, form, self._layers.less(node))
            for n in (PIXELS, 1)
        )
        single *= width % PIXELS > 0
        gathered = 0
        if self.dtype is DType.INT16 and not _is_run(geometry):
            rows, size = geometry.windows.rows.taps, geometry.run_values * self.dtype.bytes
            gathered = 4 * min(copying.gather_code(rows, size, PIXELS), window_moves.LONGEST_GATHER)
        return pair + single + gathered

    def packed_bytes(self, node: Node) -> int:
        return self._layers.packed_bytes(node)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: two pixels at a time, then single ones."""
        node, x, sink = layer.node, layer.input_rows(0), Nhwc(layer.output_rows())
        size = self.scratch_bytes(node, IN_ONE_CALL) // self.dtype.bytes
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        scratch = ir.Buffer("scratch", (1, size), x.buffer.dtype, alignment=4)
        loops = self._loops(node, (layer.y0, layer.y1), x, sink, scratch)
        return layer.function(name, scratch if size else None, loops)

    def phase_loops(self, phase: Phase, x: Rows, y: Rows, scratch: ir.Buffer) -> ir.Stmt:
        rows, sink = (0, Geometry.of(phase.node).output.height), SpreadPixels(y, phase)
        return self._loops(phase.node, rows, x, sink, scratch, phase.step)

    def _loops(
        self, node: Node, rows: tuple[te.ExprLike, te.ExprLike], x: Rows, sink: Sink,
        scratch: ir.Buffer, step: int = 1,
    ) -> ir.Stmt:  # fmt: skip
        """Return the loops over groups of channels and pixels, which are `step` apart in `sink`."""
        geometry, packed = Geometry.of(node), self._layers.pack(node)
        values, channels = geometry.values, geometry.output.channels
        stride = geometry.pixel_stride if _is_run(geometry) else values
        distance = channels * geometry.groups * step

        def kernel(pixels: int) -> KernelDescription:
            return gemm(pixels, values, stride, channels, packed.rescaling, distance, packed.less)

        def group(number: te.Expr) -> ir.Stmt:
            of_group = replace(x, first=number * geometry.image.channels)
            source: Source = _Windows(of_group, geometry, scratch)
            if _is_run(geometry):
                is_line = geometry.is_pointwise and x.is_whole
                source = DirectRows(of_group, geometry, is_line=is_line)
            first = number * -(-channels // LANES)
            constants = at(packed.weights, first, 0, 0, 0), at(packed.constants, first, 0, 0)
            tile = Tile(_COUNTS, (Product(kernel, constants, number * channels),))
            return pixel_loops(rows, geometry.output.width, source, tile, sink)

        return each("group", geometry.groups, group)


class _Windows(Source):
    """Windows of neighbouring pixels, copied: at once where none of them leaves the image."""

    def __init__(self, x: Rows, geometry: Geometry, scratch: ir.Buffer) -> None:
        self.x, self.geometry = x, geometry
        self.windows = self.scratch = scratch
        self.copies = _Copies(x, geometry, self.windows)

    def at(self, _pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.windows, 0, 0)

    def block(self, pixel: Pixel, count: int) -> ir.Stmt:
        geometry, windows = self.geometry, self.geometry.windows
        rows, columns = windows.rows, windows.columns
        reach = (count - 1) * columns.stride
        dtype = self.windows.dtype

        def one_by_one() -> ir.Stmt:
            return self.copies.windows(pixel.row, pixel.column, count)

        if not (self.x.is_whole and window_moves.gathers(geometry, count, dtype)):
            return one_by_one()
        window = window_moves.window_of(geometry)
        kernel = copying.gather(window, count, geometry.pixel_stride, dtype)

        def some(top: te.Expr, left: te.Expr) -> ir.Stmt:
            last = top + (rows.taps - 1) * rows.dilation
            gathered = call(kernel, self.x.at(top, left, 0), at(self.windows, 0, 0))
            in_rows = when((top >= 0) & (last < rows.size), gathered, one_by_one())
            # By columns first: the loop over them is split where this changes.
            return when(self.copies.is_inside(left, reach), in_rows, one_by_one())

        return let(
            "top", pixel.row * rows.stride - rows.before,
            lambda top: let(
                "left", pixel.column * columns.stride - columns.before, lambda left: some(top, left)
            ),
        )  # fmt: skip


class _Copies(gather.Gather):
    """Elements of windows, copied to `target`."""

    def __init__(self, x: Rows, geometry: Geometry, target: ir.Buffer) -> None:
        super().__init__(x, geometry)
        self.target = target

    def _runs(self, ky: te.Expr, y: te.Expr, left: te.Expr, pixels: int, lane: te.Expr) -> ir.Stmt:
        geometry, dtype = self.geometry, self.target.dtype
        if not window_moves.gathers_taps(geometry, dtype):
            return super()._runs(ky, y, left, pixels, lane)
        kernel = copying.gather(window_moves.row_of(geometry), 1, 0, dtype)
        place = self._place(ky, te.as_expr(0, DType.INT32), lane)
        return call(kernel, self.x.at(y, left, 0), at(self.target, 0, place))

    def run(
        self, source: ir.BufferArgument, pixels: int, ky: te.Expr, number: te.Expr, lane: te.Expr
    ) -> ir.Stmt:
        size = self.geometry.run_values
        return self._copy(size, source, self._place(ky, number * size, lane))

    def tap(self, y: te.Expr, column: te.Expr, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        channels = self.geometry.image.channels
        return self._copy(channels, self.x.at(y, column, 0), self._place(ky, kx * channels, lane))

    def outside(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        channels = self.geometry.image.channels
        return self._fill(channels, self._place(ky, kx * channels, lane))

    def row_outside(self, ky: te.Expr, pixels: int, lane: te.Expr) -> ir.Stmt:
        first = te.as_expr(0, DType.INT32)
        places = (self._place(ky, first, lane + n) for n in range(pixels))
        return seq(*(self._fill(self.geometry.row_values, place) for place in places))

    def _place(self, ky: te.Expr, offset: te.Expr, lane: te.Expr) -> te.Expr:
        return lane * self.geometry.values + ky * self.geometry.row_values + offset

    def _copy(self, size: int, source: ir.BufferArgument, place: te.Expr) -> ir.Stmt:
        if size >= window_moves.LEAST_CALL:
            return call(copying.copy(size, self.target.dtype), source, at(self.target, 0, place))
        row, column, first = map(te.Expr, source.indices)
        steps = (divmod(n, self.geometry.image.channels) for n in range(size))
        return seq(*(
            store(self.target, (0, place + n), load(source.buffer, row, column + far, first + lane))
            for n, (far, lane) in enumerate(steps)
        ))  # fmt: skip

    def _fill(self, size: int, place: te.Expr) -> ir.Stmt:
        if size >= window_moves.LEAST_CALL:
            kernel = copying.fill(size, self.zero_point, self.target.dtype)
            return call(kernel, at(self.target, 0, place))
        places = ((0, place + n) for n in range(size))
        return seq(*(store(self.target, index, self.zero_point) for index in places))
