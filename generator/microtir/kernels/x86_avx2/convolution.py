"""Convolutions and fully connected layers as products of pixels with packed weights.

Any kernel size, stride, dilation and padding.  A kernel computes a run of neighbouring pixels: a
row or part of one, or several rows where no pixel needs another one's input.  Values outside the
image are the input's zero point, so that the full sum of weights folds into the bias; images
that windows leave are copied into scratch, with a border.
"""

from __future__ import annotations

from collections.abc import Callable

from microtir.config import Feature
from microtir.graph.ir import Node
from microtir.kernels.common import bordered_rows, kernel, made_once, refusals, statements
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import (
    Count,
    Nhwc,
    Product,
    Sink,
    Source,
    Tile,
    macro_kernel,
)
from microtir.kernels.common.weights import matrix_of
from microtir.kernels.x86_avx2.copying import copy, copy_cost
from microtir.kernels.x86_avx2.gemm import Inputs, PackedLinear, gemm, pack, packed_bytes
from microtir.operators.common.rows import Extents
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense import formula as dense
from microtir.operators.dense.definition import FullyConnected
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_MOST_LANES = 16384  # bytes of stack for the inputs of one kernel
_MOST_PIXELS = 48  # of several rows: more would not be faster
_CODE, _CODE_DENSE = 750, 150  # bytes of a layer with a kernel beyond those of the direct one


def _inputs(geometry: Geometry, pixels: int, row_step: int = 0) -> Inputs:
    """Return the inputs of neighbouring pixels of one row; `row_step` is that of their windows."""
    rows, columns = geometry.windows.rows, geometry.windows.columns
    channels = geometry.image.channels
    joined = columns.dilation == 1
    return Inputs(
        rows=rows.taps,
        length=columns.reach(pixels) * channels,
        stride=row_step,
        step=columns.stride * channels,
        segment=(columns.taps if joined else 1) * channels,
        parts=1 if joined else columns.taps,
        part_step=columns.dilation * channels,
    )


def _pixels_of_kernel(geometry: Geometry) -> int | None:
    """Return how many pixels of a row one kernel computes; None if not even one fits."""
    parts = 1
    while True:
        pixels = -(-geometry.output.width // parts)
        if _inputs(geometry, pixels).lane_bytes <= _MOST_LANES:
            return pixels
        if pixels == 1:
            return None
        parts += 1


def _packed(node: Node) -> PackedLinear | None:
    matrix, inputs = matrix_of(node), _inputs(Geometry.of(node), 1)
    return pack(matrix.reshape(len(matrix), inputs.segments, inputs.segment), node)


@made_once.of_node
def refusal(node: Node) -> Refusal | None:
    """Return what speaks against it: int8 over one image, factors that fit the packed form."""
    reason = refusals.int8_refusal(node) or refusals.mixed_refusal(node)
    if reason is not None:
        return reason
    geometry = Geometry.of(node)
    if not geometry.has_one_image:
        return Refusal.IMAGES
    if _pixels_of_kernel(geometry) is None or 0 in (geometry.output.height, geometry.output.width):
        return Refusal.SIZES
    return Refusal.FORM if _packed(node) is None else None


class Gemm(kernel.Kernel):
    """Pixels times weights of eight channels.

    Args:
        name: of the kernel.
        by_window: whether the rows behind one output row at a time are in scratch.
    """

    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.VECTOR
    depends_on_calls = True

    def __init__(self, name: str, *, by_window: bool) -> None:
        self.name, self.by_window = name, by_window

    def reject(self, node: Node) -> Refusal | None:
        reason = refusal(node)
        if reason is not None or not self.by_window:
            return reason
        is_same = node.output.type.rows == 1 or not _needs_scratch(Geometry.of(node))
        return Refusal.WINDOWS if is_same else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the image with its border, or of the window of a row."""
        geometry = Geometry.of(node)
        if self.by_window:
            return geometry.window_elements
        rows = geometry.windows.rows.reach(geometry.output.height)
        return rows * geometry.copied_step if _needs_scratch(geometry) else 0

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions from counts of the compiled kernels for AVX2."""
        geometry, output = Geometry.of(node), Extents.of(node.output.type)
        inputs, pixels = _inputs(geometry, 1), output.images * output.height * output.width
        products = inputs.segments * inputs.quads * output.channels // 6
        widened = inputs.segments * inputs.segment // 8
        copies = 0
        if _needs_scratch(geometry):
            times = node.output.type.rows if calls.rows or self.by_window else 1
            copies = copy_cost(geometry, times)
        return pixels * (products + 2 * output.channels + widened + 4) + copies

    def packed_bytes(self, node: Node) -> int:
        inputs = _inputs(Geometry.of(node), 1)
        return packed_bytes(node.output.type.channels, inputs.segments, inputs.segment)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: kernels over runs of pixels."""
        geometry, packed = Geometry.of(layer.node), refusals.asked(_packed(layer.node))
        if geometry.is_pointwise:
            return _emit_flat(layer, name, packed, geometry.image.channels, geometry.output.width)
        pixels, source = refusals.asked(_pixels_of_kernel(geometry)), self._source(layer, geometry)
        step = source.row_step if geometry.windows.rows.taps > 1 else 0
        counts, sink = (Count(pixels, "tile", overlaps=True),), Nhwc(layer.output_rows())

        def inputs(count: int) -> Inputs:
            return _inputs(geometry, count, step)

        return _emit(layer, name, geometry.output.width, source, inputs, counts, sink, packed)

    def code_bytes(self, _node: Node) -> int:
        """Return the bytes of a kernel beyond what it shares with those of other layers, at -O2."""
        return _CODE

    def _source(self, layer: Layer, geometry: Geometry) -> bordered_rows.WindowRows:
        if not _needs_scratch(geometry):
            return bordered_rows.DirectRows(layer.input_rows(0), geometry)
        if self.by_window:
            return bordered_rows.BorderedRows(layer.input_rows(0), geometry, copy, 0)
        return bordered_rows.BorderedImage(layer, geometry, copy, is_line=False)


def _needs_scratch(geometry: Geometry) -> bool:
    """Return whether rows may not follow each other, as in a ring."""
    return geometry.is_bordered or geometry.windows.rows.taps > 1


def _emit_flat(
    layer: Layer, name: str, packed: PackedLinear, values: int, width: int
) -> ir.PrimFunc:
    """Emit pixels of `values` inputs each, several rows at a time where they follow each other."""
    x, y = layer.input_rows(0), layer.output_rows()
    rows, at_once = y.type.rows, 1
    if x.is_whole and y.is_whole:
        most = max(1, min(_MOST_PIXELS // width, _MOST_LANES // (2 * values * width + 8)))
        at_once = max(n for n in range(1, most + 1) if rows % n == 0)
    source = bordered_rows.DirectRows(x, is_line=at_once > 1)
    tiles = -(-at_once * width * values * 2 // _MOST_LANES)
    counts: tuple[Count, ...] = (Count(-(-width // tiles), "tile", overlaps=True),)
    if at_once > 1:
        counts = Count(at_once * width, "block"), Count(width, "row")

    def inputs(pixels: int) -> Inputs:
        return Inputs(1, pixels * values, 0, values, values)

    return _emit(layer, name, width, source, inputs, counts, Nhwc(y), packed)


def _emit(
    layer: Layer,
    name: str,
    width: int,
    source: Source,
    inputs: Callable[[int], Inputs],
    counts: tuple[Count, ...],
    sink: Sink,
    packed: PackedLinear,
) -> ir.PrimFunc:
    """Emit products of blocks of so many pixels with all weights."""
    constants = (
        statements.at(packed.weights, 0, 0, 0, 0),
        statements.at(packed.constants, 0, 0, 0),
        statements.at(packed.rounding, 0, 0),
    )
    product = Product(lambda count: gemm(inputs(count), count, packed), constants)
    return macro_kernel(layer, name, width, source, Tile(counts, (product,)), sink)


# --- fully connected ---


def _packed_dense(node: Node) -> PackedLinear | None:
    return pack(matrix_of(node).reshape(len(node.inputs[1].values), 1, -1), node)


class Dense(kernel.Kernel):
    """Rows of inputs are pixels."""

    name = "dense_s8_6x8_avx2"
    operators = (FullyConnected,)
    needs = Feature.VECTOR

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8, rows that are those of the input, factors that fit.
        """
        reason = refusals.int8_refusal(node)
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

    def packed_bytes(self, node: Node) -> int:
        outputs, inputs = node.inputs[1].shape
        return packed_bytes(outputs, 1, inputs)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        packed = refusals.asked(_packed_dense(layer.node))
        inputs = layer.node.inputs[1].shape[1]
        return _emit_flat(layer, name, packed, inputs, Extents.of(layer.node.output.type).width)

    def code_bytes(self, _node: Node) -> int:
        """Return the bytes of a kernel beyond what it shares with those of other layers, at -O2."""
        return _CODE_DENSE
