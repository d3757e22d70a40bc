"""Convolutions as matrix products: two pixels by four channels.

Where the values behind a pixel follow each other in memory the kernel reads them there; otherwise
windows are copied into scratch first.  Values outside the image are the input's zero point, so
that the full sum of weights folds into the bias.
"""

from __future__ import annotations

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.copying import copy, fill, gather, gather_code
from microtir.kernels.arm_mve.gemm_kernels import PIXELS, code_size, gemm, instructions
from microtir.kernels.arm_mve.linear import BYTES, PackedLinear, pack_linear
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.refusals import int8_refusal, mixed_refusal
from microtir.kernels.common.statements import at, let, load, loop, seq, store, when
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_IMMEDIATE = 4095  # largest offset of ADDW
_LARGEST = 0xFFFF  # what MOVW loads
_LONGEST_GATHER = 200  # instructions
_CALL = 16  # instructions around a call of a kernel
_LEAST_CALL = 5  # bytes that a call moves faster than single loads


def _packed(node: Node) -> PackedLinear | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, Conv2D | DepthwiseConv2D) and weights is not None
    if isinstance(op, DepthwiseConv2D):
        weights = weights.transpose(3, 1, 2, 0)
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return pack_linear(weights.reshape(len(weights), -1), node, params)


def _values(geometry: Geometry) -> int:
    """Return values of a sum."""
    return geometry.values


def _is_run(geometry: Geometry) -> bool:
    """Return whether the values behind every pixel follow each other in the input."""
    return geometry.runs == 1 and not geometry.windows.clip(geometry.output)


class Gemm(Kernel):
    """Two pixels by four channels, sixteen products an instruction."""

    name = "conv_s8_2x4_mve"
    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.MVE
    cycles = 156
    depends_on_calls = True

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8 over one image, factors below 1."""
        reason = int8_refusal(node) or mixed_refusal(node)
        if reason is not None:
            return reason
        geometry = Geometry.of(node)
        if geometry.image.images != 1 and not geometry.is_pointwise:
            return Refusal.IMAGES
        fits = geometry.output.channels <= _IMMEDIATE and geometry.pixel_stride <= _LARGEST
        row = geometry.image.width * geometry.image.channels * geometry.windows.rows.dilation
        sizes = 0 < _values(geometry) <= _LARGEST and row <= _LARGEST
        if not (fits and sizes):
            return Refusal.SIZES
        return Refusal.FORM if _packed(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the copied windows."""
        geometry = Geometry.of(node)
        return 0 if _is_run(geometry) else PIXELS * _values(geometry)

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M55; pairs do not span calls."""
        geometry = Geometry.of(node)
        lines = geometry.output.images * geometry.output.height
        if geometry.is_pointwise and not calls.rows:
            lines = 1
        return _lines_cost(geometry, lines)

    def code_bytes(self, node: Node) -> int:
        """Return bytes of the kernels for two pixels and for one; other layers may use the same."""
        geometry = Geometry.of(node)
        flat = geometry.is_pointwise
        width = geometry.output.width * (geometry.output.height if flat else 1)
        values = _values(geometry)
        return code_size(PIXELS, values) + (code_size(1, values) if width % PIXELS else 0)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: two pixels at a time, then single ones."""
        packed = _packed(layer.node)
        assert packed is not None, "refusal() was asked"
        return _Emitter(layer, Geometry.of(layer.node), packed).function(name)


def _lines_cost(geometry: Geometry, lines: int) -> int:
    """Return instructions of an output that is computed in lines of pixels of the same length."""
    output, values = geometry.output, _values(geometry)
    pixels = output.images * output.height * output.width // lines
    pairs, single = divmod(pixels, PIXELS)
    line = pairs * (instructions(PIXELS, values, output.channels) + _CALL)
    line += single * (instructions(1, values, output.channels) + _CALL)
    if not _is_run(geometry):
        pieces = -(-geometry.run_values // BYTES) * geometry.runs
        line += pixels * (3 * pieces + 20)
    return lines * line


class _Emitter:
    def __init__(self, layer: Layer, geometry: Geometry, packed: PackedLinear) -> None:
        self.layer = layer
        self.geometry = geometry
        self.packed = packed
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        self.values = _values(geometry)
        self.is_run = _is_run(geometry)
        self.flat = geometry.is_pointwise and self.x.is_whole and self.y.is_whole
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        self.windows = ir.Buffer("scratch", (1, PIXELS * self.values), DType.INT8, alignment=4)
        self.zero_point = layer.node.inputs[0].type.quant.zero_point

    def function(self, name: str) -> ir.PrimFunc:
        body = self.flat_pixels() if self.flat else self.rows()
        return self.layer.function(name, None if self.is_run else self.windows, body)

    # --- loops ---

    def flat_pixels(self) -> ir.Stmt:
        """Emit all pixels of the row range as one line: rows of any width fill whole pairs."""
        width, layer = self.geometry.output.width, self.layer
        first, pixels = layer.y0 * width, (layer.y1 - layer.y0) * width

        def some(pixel: te.Expr, count: int) -> ir.Stmt:
            row, column = pixel // width, pixel % width
            return self.product(count, self.x.at(row, column, 0), row, column)

        def both(pairs: te.Expr) -> ir.Stmt:
            whole = loop("pair", 0, pairs, lambda n: some(first + n * PIXELS, PIXELS))
            if width % PIXELS == 0:
                return whole
            rest = loop("pixel", first + pairs * PIXELS, first + pixels, lambda p: some(p, 1))
            return seq(whole, rest)

        # An empty range may be given with y1 < y0, which must not reach rows before y0.
        return let("pairs", te.maximum(pixels, 0) // PIXELS, both)

    def rows(self) -> ir.Stmt:
        width = self.geometry.output.width
        pairs, whole = width // PIXELS, width // PIXELS * PIXELS
        pixels = self.run_pixels if self.is_run else self.copied_pixels
        return loop(
            "row", self.layer.y0, self.layer.y1,
            lambda row: seq(
                loop("pair", 0, pairs, lambda n: pixels(row, n * PIXELS, PIXELS)),
                loop("col", whole, width, lambda column: pixels(row, column, 1)),
            ),
        )  # fmt: skip

    def run_pixels(self, row: te.Expr, column: te.Expr, count: int) -> ir.Stmt:
        windows = self.geometry.windows
        x = self.x.at(row * windows.rows.stride, column * windows.columns.stride, 0)
        return self.product(count, x, row, column)

    def copied_pixels(self, row: te.Expr, column: te.Expr, count: int) -> ir.Stmt:
        return seq(
            self.copy_windows(row, column, count),
            self.product(count, at(self.windows, 0, 0), row, column),
        )

    def product(self, pixels: int, x: ir.BufferArgument, row: te.Expr, column: te.Expr) -> ir.Stmt:
        """Emit the micro-kernel for all channels of some pixels."""
        stride = self.geometry.pixel_stride if self.is_run else self.values
        channels = self.geometry.output.channels
        return call(
            gemm(pixels, self.values, stride, channels, self.packed.rescaling),
            x,
            at(self.packed.weights, 0, 0, 0, 0),
            at(self.packed.constants, 0, 0, 0),
            self.y.at(row, column, 0),
        )

    # --- copies of windows ---

    def copy_windows(self, row: te.Expr, column: te.Expr, pixels: int) -> ir.Stmt:
        """Emit windows of neighbouring output pixels: at once where none leaves the image."""
        rows, columns = self.geometry.windows.rows, self.geometry.windows.columns

        def one_by_one(top: te.Expr, left: te.Expr) -> ir.Stmt:
            return loop(
                "pixel", 0, pixels,
                lambda p: self.copy_window(top, left + p * columns.stride, p * self.values),
            )  # fmt: skip

        def some(top: te.Expr, left: te.Expr) -> ir.Stmt:
            length = self.geometry.run_values
            code = gather_code(rows.taps, length, pixels)
            together = (
                self.geometry.runs_of_row == 1 and self.x.is_whole and code <= _LONGEST_GATHER
            )
            if not together or columns.taps + (pixels - 1) * columns.stride > columns.size:
                return one_by_one(top, left)
            step = rows.dilation * self.geometry.image.width * self.geometry.image.channels
            stride = self.geometry.pixel_stride
            kernel = gather(rows.taps, length, step, pixels, stride)
            reach = (pixels - 1) * columns.stride
            last = (rows.taps - 1) * rows.dilation
            gathered = when(
                (top >= 0) & (top + last < rows.size),
                call(kernel, self.x.at(top, left, 0), at(self.windows, 0, 0)),
                one_by_one(top, left),
            )
            # By columns first: the loop over them is split where this changes.
            return when(self.is_inside(left, reach), gathered, one_by_one(top, left))

        return let(
            "top", row * rows.stride - rows.before,
            lambda top: let(
                "left", column * columns.stride - columns.before, lambda left: some(top, left)
            ),
        )  # fmt: skip

    def is_inside(self, left: te.Expr, reach: int) -> te.Expr:
        columns = self.geometry.windows.columns
        last = (columns.taps - 1) * columns.dilation + reach
        return (left >= 0) & (left + last < columns.size)

    def copy_window(self, top: te.Expr, left: te.Expr, target: te.Expr) -> ir.Stmt:
        """Emit one window, row by row, to `target` in scratch."""
        rows = self.geometry.windows.rows
        size = self.values // rows.taps

        def kernel_row(ky: te.Expr) -> ir.Stmt:
            place = target + ky * size

            def inside(y: te.Expr) -> ir.Stmt:
                there = (y >= 0) & (y < rows.size)
                return when(there, self.copy_row(y, left, place), self.fill(size, place))

            return let("y", top + ky * rows.dilation, inside)

        return loop("ky", 0, rows.taps, kernel_row)

    def copy_row(self, y: te.Expr, left: te.Expr, place: te.Expr) -> ir.Stmt:
        """Emit a row of a window: whole segments if all of it lies inside, else tap by tap."""
        columns, channels = self.geometry.windows.columns, self.geometry.image.channels
        count, length = self.geometry.runs_of_row, self.geometry.run_values

        def tap(kx: te.Expr) -> ir.Stmt:
            def inside(column: te.Expr) -> ir.Stmt:
                there = (column >= 0) & (column < columns.size)
                to = place + kx * channels
                return when(there, self.copy(channels, y, column, to), self.fill(channels, to))

            return let("x_col", left + kx * columns.dilation, inside)

        return when(
            self.is_inside(left, 0),
            loop(
                "part", 0, count,
                lambda n: self.copy(length, y, left + n * columns.dilation, place + n * length),
            ),
            loop("kx", 0, columns.taps, tap),
        )  # fmt: skip

    def copy(self, size: int, y: te.Expr, column: te.Expr, place: te.Expr) -> ir.Stmt:
        """Emit some bytes from a column of a row on."""
        if size < _LEAST_CALL:
            return seq(*(
                store(self.windows, (0, place + n), self.element(y, column, n))
                for n in range(size)
            ))  # fmt: skip
        return call(copy(size), self.x.at(y, column, 0), at(self.windows, 0, place))

    def element(self, y: te.Expr, column: te.Expr, number: int) -> te.Expr:
        """Return byte `number` from a column of a row on."""
        channels = self.geometry.image.channels
        ahead, channel = divmod(number, channels)
        return load(self.x.buffer, self.x.slot(y), column + ahead, channel)

    def fill(self, size: int, place: te.Expr) -> ir.Stmt:
        """Emit values outside the image: the zero point, for which the bias accounts."""
        if size < _LEAST_CALL:
            return seq(*(
                store(self.windows, (0, place + n), self.zero_point) for n in range(size)
            ))  # fmt: skip
        return call(fill(size, self.zero_point), at(self.windows, 0, place))
