"""Convolutions and fully connected layers as products of pixels with packed weights.

Any kernel size, stride, dilation and padding.  A kernel computes a run of neighbouring pixels: a
row or part of one, or several rows where no pixel needs another one's input.  Values outside the
image are the input's zero point, so that the full sum of weights folds into the bias; images
that windows leave are copied into scratch, with a border.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.refusals import int8_refusal, mixed_refusal
from microtir.kernels.common.statements import at, loop, seq
from microtir.kernels.x86_avx2.gemm import PackedLinear, Source, gemm, pack
from microtir.kernels.x86_avx2.image import WindowedImage, reach
from microtir.kernels.x86_avx2.rows import in_blocks
from microtir.operators.common.rows import Extents, RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.operators.dense import formula as dense
from microtir.operators.dense.definition import FullyConnected, fully_connected_params
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_MOST_LANES = 16384  # bytes of stack for the inputs of one kernel
_MOST_PIXELS = 48  # of several rows: more would not be faster
_CODE, _CODE_DENSE = 750, 150  # bytes of a layer with a kernel beyond those of the direct one


@dataclass(frozen=True, slots=True)
class _Geometry(WindowedImage):
    @property
    def is_pointwise(self) -> bool:
        """Return whether output pixel n needs input pixel n and nothing else."""
        return self.windows.is_pointwise(self.output)

    @property
    def is_padded(self) -> bool:
        return self.windows.clip(self.output)

    def source(self, pixels: int, row_elements: int) -> Source:
        """Return the inputs of neighbouring pixels of one row, in rows of so many elements."""
        rows, columns, channels = self.windows.rows, self.windows.columns, self.image.channels
        joined = columns.dilation == 1
        return Source(
            rows=rows.taps,
            length=reach(columns, pixels) * channels,
            stride=rows.dilation * row_elements,
            step=columns.stride * channels,
            segment=(columns.taps if joined else 1) * channels,
            parts=1 if joined else columns.taps,
            part_step=columns.dilation * channels,
        )

    def pixels_of_kernel(self) -> int | None:
        """Return how many pixels of a row one kernel computes; None if not even one fits."""
        parts = 1
        while True:
            pixels = -(-self.output.width // parts)
            if self.source(pixels, 0).lane_bytes <= _MOST_LANES:
                return pixels
            if pixels == 1:
                return None
            parts += 1


def _packed(node: Node) -> PackedLinear | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, Conv2D | DepthwiseConv2D) and weights is not None
    if isinstance(op, DepthwiseConv2D):
        weights = weights.transpose(3, 1, 2, 0)
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    source = _Geometry.of(node).source(1, 0)
    return pack(weights.reshape(len(weights), source.segments, source.segment), node, params)


@of_node
def refusal(node: Node) -> Refusal | None:
    """Return what speaks against it: int8 over one image, factors that fit the packed form."""
    reason = int8_refusal(node) or mixed_refusal(node)
    if reason is not None:
        return reason
    geometry = _Geometry.of(node)
    if geometry.image.images != 1 and not geometry.is_pointwise:
        return Refusal.IMAGES
    if geometry.pixels_of_kernel() is None or 0 in (geometry.output.height, geometry.output.width):
        return Refusal.SIZES
    return Refusal.FORM if _packed(node) is None else None


class Gemm(Kernel):
    """Pixels times weights of eight channels."""

    name = "gemm_panels"
    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.VECTOR
    depends_on_calls = True

    def reject(self, node: Node) -> Refusal | None:
        return refusal(node)

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the image with its border."""
        geometry = _Geometry.of(node)
        return geometry.padded.bytes if _needs_scratch(geometry) else 0

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions from counts of the compiled kernels for AVX2."""
        geometry, output = _Geometry.of(node), Extents.of(node.output.type)
        source, pixels = geometry.source(1, 0), output.images * output.height * output.width
        products = source.segments * source.quads * output.channels // 6
        widened = source.segments * source.segment // 8
        copies = 0
        if _needs_scratch(geometry):
            copies = geometry.padded.copy_cost(self._copies(node, calls))
        return pixels * (products + 2 * output.channels + widened + 4) + copies

    def _copies(self, node: Node, calls: Calls) -> int:
        """Return how often windows are copied."""
        return node.output.type.rows if calls.rows else 1

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: kernels over runs of pixels."""
        geometry, packed = _Geometry.of(layer.node), _packed(layer.node)
        assert packed is not None, "refusal() was asked"
        if geometry.is_pointwise:
            return _emit_flat(layer, name, packed, geometry.image.channels, geometry.output.width)
        return _Emitter(layer, geometry, packed, by_window=False).function(name)

    def code_bytes(self, _node: Node) -> int:
        """Return the bytes of a kernel beyond what it shares with those of other layers, at -O2."""
        return _CODE


def _needs_scratch(geometry: _Geometry) -> bool:
    """Return whether rows may not follow each other, as in a ring."""
    return geometry.is_padded or geometry.windows.rows.taps > 1


def _product(source: Source, pixels: int, packed: PackedLinear, x: ir.BufferArgument,
             y: ir.BufferArgument) -> ir.Stmt:  # fmt: skip
    weights = at(packed.weights, 0, 0, 0, 0)
    constants, rounding = at(packed.constants, 0, 0, 0), at(packed.rounding, 0, 0)
    return call(gemm(source, pixels, packed), x, weights, constants, rounding, y)


def _emit_flat(
    layer: Layer, name: str, packed: PackedLinear, values: int, width: int
) -> ir.PrimFunc:
    """Emit pixels of `values` inputs each, several rows at a time where they follow each other."""
    x, y = layer.input_rows(0), layer.output_rows()
    together = 1
    if x.is_whole and y.is_whole:
        rows = y.type.rows
        most = max(1, min(_MOST_PIXELS // width, _MOST_LANES // (2 * values * width + 8)))
        together = max(n for n in range(1, most + 1) if rows % n == 0)

    def some(row: te.Expr, count: int) -> ir.Stmt:
        pixels = count * width
        tiles = -(-pixels * values * 2 // _MOST_LANES)
        part = -(-pixels // tiles)
        source = Source(1, part * values, 0, values, values)

        def tile(n: te.Expr) -> ir.Stmt:
            first = te.minimum(n * part, pixels - part)
            return _product(source, part, packed, x.at(row, first, 0), y.at(row, first, 0))

        return loop("tile", 0, tiles, tile)

    return layer.function(name, None, in_blocks(layer, together, some))


class GemmByWindow(Gemm):
    """The same with the window of one row at a time in scratch."""

    name = "gemm_panels_windows"

    def reject(self, node: Node) -> Refusal | None:
        reason = super().reject(node)
        if reason is not None:
            return reason
        is_same = node.output.type.rows == 1 or not _needs_scratch(_Geometry.of(node))
        return Refusal.WINDOWS if is_same else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the window of a row."""
        return _Geometry.of(node).padded.bytes_behind(1)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the function that copies a window, computes its row, and goes on to the next."""
        geometry, packed = _Geometry.of(layer.node), _packed(layer.node)
        assert packed is not None, "reject() was asked"
        return _Emitter(layer, geometry, packed, by_window=True).function(name)

    def _copies(self, node: Node, _calls: Calls) -> int:
        return node.output.type.rows


class _Emitter:
    """Convolutions whose pixels need several inputs, row by row.

    Scratch holds what all rows of a call read or, `by_window`, what one of them does.
    """

    def __init__(
        self, layer: Layer, geometry: _Geometry, packed: PackedLinear, *, by_window: bool
    ) -> None:
        self.layer = layer
        self.by_window = by_window
        self.geometry = geometry
        self.packed = packed
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        padded = _needs_scratch(geometry)
        self.scratch = geometry.padded.buffer(1 if by_window else None) if padded else None
        self.row_elements = geometry.padded.row_elements if padded else 0

    def function(self, name: str) -> ir.PrimFunc:
        layer, pixels = self.layer, self.geometry.pixels_of_kernel()
        assert pixels is not None, "refusal() was asked"
        source = self.geometry.source(pixels, self.row_elements)
        width = self.geometry.output.width

        def tile(row: te.Expr, n: te.Expr) -> ir.Stmt:
            first = te.minimum(n * pixels, width - pixels)
            x, y = self.inputs(row, first), self.y.at(row, first, 0)
            return _product(source, pixels, self.packed, x, y)

        def computed(row: te.Expr) -> ir.Stmt:
            return loop("tile", 0, -(-width // pixels), lambda n: tile(row, n))

        image, scratch = self.geometry.padded, self.scratch
        if scratch is None:
            return layer.function(name, None, loop("row", layer.y0, layer.y1, computed))
        zero_point = layer.node.inputs[0].type.quant.zero_point
        if self.by_window:
            body = loop(
                "row", layer.y0, layer.y1,
                lambda y: seq(image.fill_window(scratch, self.x, zero_point, y), computed(y)),
            )  # fmt: skip
            return layer.function(name, scratch, body)
        fill = image.fill(scratch, self.x, zero_point, layer.y0, layer.y1)
        rows = loop("row", layer.y0, layer.y1, computed)
        return layer.function(name, scratch, seq(fill, rows))

    def inputs(self, row: te.Expr, first: te.Expr) -> ir.BufferArgument:
        """Return where the inputs of output pixel (row, first) begin."""
        rows, columns = self.geometry.windows.rows, self.geometry.windows.columns
        if self.scratch is None:
            return self.x.at(row * rows.stride, first * columns.stride, 0)
        start = row if self.by_window else self.layer.y0
        place = (row - start) * rows.stride * self.row_elements
        step = columns.stride * self.geometry.image.channels
        return at(self.scratch, 0, place + first * step)


# --- fully connected ---


def _packed_dense(node: Node) -> PackedLinear | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, FullyConnected) and weights is not None
    types = node.inputs[0].type, node.inputs[1].type, node.output.type
    return pack(weights.reshape(len(weights), 1, -1), node, fully_connected_params(op, *types))


class Dense(Kernel):
    """Rows of inputs are pixels."""

    name = "gemm_panels"
    operators = (FullyConnected,)
    needs = Feature.VECTOR

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8, rows that are those of the input, factors that fit.
        """
        reason = int8_refusal(node)
        if reason is not None:
            return reason
        if not (0 < 2 * node.inputs[1].shape[1] <= _MOST_LANES and node.output.type.elements > 0):
            return Refusal.SIZES
        if not dense.keeps_rows(node):
            return Refusal.ROWS
        return Refusal.FORM if _packed_dense(node) is None else None

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of the compiled kernels for AVX2."""
        outputs, inputs = node.inputs[1].shape
        rows = node.output.type.elements // outputs
        return rows * (outputs * inputs // 16 + 3 * outputs + inputs // 8)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: rows of inputs are pixels."""
        packed = _packed_dense(layer.node)
        assert packed is not None, "reject() was asked"
        inputs = layer.node.inputs[1].shape[1]
        return _emit_flat(layer, name, packed, inputs, Extents.of(layer.node.output.type).width)

    def code_bytes(self, _node: Node) -> int:
        """Return the bytes of a kernel beyond what it shares with those of other layers, at -O2."""
        return _CODE_DENSE
