"""Convolutions as matrix products: patches of some pixels times packed weights.

Any kernel size, stride, dilation and padding.  Values outside the image are the input's zero
point, so that the full sum of weights folds into the bias; only patches that leave the image are
gathered pixel by pixel.  A depthwise convolution of one input channel is a convolution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.gather import Patches
from microtir.kernels.arm_dsp.gemm_kernels import CHANNELS, STEPS, TOGETHER, gemm, pack_quads
from microtir.kernels.arm_dsp.outputs import LONGEST, Outputs
from microtir.kernels.arm_dsp.outputs import planes_refusal as planar_refusal
from microtir.kernels.arm_dsp.patch import GROUP, Segments
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.micro_kernel import Unroll, call, turns
from microtir.kernels.common.packing import constant, requantised
from microtir.kernels.common.refusals import int8_refusal, mixed_refusal
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.statements import at, each, let, loop, seq
from microtir.kernels.common.weights import QUAD, channel_quads, pack_pairs
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, LayoutKind, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_IMMEDIATE = 4095  # largest offset of a load or store
_FAR = 1 << 24  # bytes from one channel to another that constants hold

# Bytes of a kernel beside its steps, of a step, and what a layer is charged of one that it shares.
_CODE = {TOGETHER: 350, 1: 230}
_STEP_CODE = {TOGETHER: 48, 1: 28}
_APART_CODE = 8  # more where words are loaded one by one
_SHARED_CODE = {TOGETHER: 330, 1: 130}
_BORDERS_CODE = 60


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Constants of a layer as `pack_quads` arranges them, and how its sums are rescaled."""

    words: ir.Buffer
    rescaling: Rescaling


def packed_of(
    node: Node, distance: int = 1, *, together: int = QUAD, values: int = 0
) -> Packed | None:
    """Return the constants of a layer; None: weights or factors do not fit the packed form.

    Args:
        node: the layer.
        distance: bytes from a channel of its output to the next.
        together: channels of a turn of the kernel.
        values: of a pixel as the kernel reads it: those of the window in their order, then any that
            count for nothing; 0: in the order of patches.
    """
    op = node.op
    assert isinstance(op, Conv2D | DepthwiseConv2D)
    weights, segments = node.inputs[1].data, Geometry.of(node).segments
    assert weights is not None
    if isinstance(op, DepthwiseConv2D):
        weights = weights.transpose(3, 1, 2, 0)
    matrix = weights.reshape(len(weights), segments.count, segments.length)
    if values:
        behind = values - segments.count * segments.length
        matrix = np.pad(matrix.reshape(len(matrix), 1, -1), ((0, 0), (0, 0), (0, behind)))
        segments = Segments(1, values)
    order = channel_quads(len(matrix), together)
    lanes = pack_pairs(segments.arrange(matrix)[order])
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    factors = requantised(matrix.reshape(len(matrix), -1), node, params)
    if lanes is None or factors is None:
        return None
    words = pack_quads(lanes, factors.constants, order, distance, together)
    return Packed(constant("packed", words), factors.rescaling)


@of_node
def refusal(node: Node) -> Refusal | None:
    """Return what speaks against it.

    Int8 over one image, weights and factors that fit the packed form.
    """
    reason = int8_refusal(node) or mixed_refusal(node)
    if reason is not None:
        return reason
    geometry = Geometry.of(node)
    if geometry.image.images != 1 and not geometry.is_pointwise:
        return Refusal.IMAGES
    channels, segments = geometry.output.channels, geometry.segments
    if channels < QUAD:
        return Refusal.FEW_CHANNELS
    tails = segments.tails * segments.tail_stride * DType.INT16.bytes
    in_reach = max((GROUP - 1) * (geometry.pixel_stride + 1), tails) < _IMMEDIATE
    if not in_reach or channels > CHANNELS or segments.steps > STEPS:
        return Refusal.SIZES
    return Refusal.FORM if packed_of(node) is None else None


def planes_refusal(node: Node) -> Refusal | None:
    """Return what speaks against writing planes, beside what `refusal` knows."""
    output = Geometry.of(node).output
    if output.channels * LONGEST >= _FAR:
        return Refusal.SIZES
    return planar_refusal(output) or refusal(node)


class Gemm(Kernel):
    """Patches of pixels times packed weights of four channels.

    Args:
        name: of the kernel.
        unroll: of the sums.
        writes: NHWC, or planes.
    """

    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    depends_on_calls = True

    def __init__(self, name: str, unroll: Unroll, writes: LayoutKind) -> None:
        self.name, self.unroll, self.writes = name, unroll, writes
        # Less where words are loaded one by one.
        self.cycles = (112 if unroll.apart else 135) + 2 * self.is_planar

    @property
    def is_planar(self) -> bool:
        """Return whether outputs are planes."""
        return self.writes is not LayoutKind.NHWC

    def reject(self, node: Node) -> Refusal | None:
        return planes_refusal(node) if self.is_planar else refusal(node)

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes of one patch."""
        geometry = Geometry.of(node)
        return geometry.segments.elements(self._patch(geometry, calls)) * DType.INT16.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions from counts of the emulated Cortex-M4.

        Patches span the rows of a call where these follow each other.
        """
        geometry = Geometry.of(node)
        rows, width = geometry.output.images * geometry.output.height, geometry.output.width
        if not self._spans_rows(geometry) or (calls.rows and not calls.alone):
            return rows * self._line(geometry, width)
        together, patch = calls.rows or max(rows, 1), self._patch(geometry, calls)
        count, left = divmod(rows, together)
        cost = count * self._line(geometry, together * width, patch)
        return cost + left * self._line(geometry, width, patch)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: patches in scratch, products of many pixels, then of one."""
        return _Emitter(layer, self.unroll).function(name)

    def _spans_rows(self, geometry: Geometry) -> bool:
        return geometry.is_pointwise and not self.is_planar

    def _patch(self, geometry: Geometry, calls: Calls) -> int:
        """Return the pixels of a patch."""
        few = calls.rows if calls.alone and self._spans_rows(geometry) else 0
        return geometry.pixels_of_calls(few)

    def code_bytes(self, node: Node) -> int:
        """Return bytes of the kernels for two pixels and for one.

        Those with a loop are shared by layers.
        """
        geometry = Geometry.of(node)
        steps = geometry.segments.steps
        pixels = (TOGETHER, 1) if geometry.output.width % TOGETHER else (TOGETHER,)
        borders = _BORDERS_CODE if self.is_planar else 0
        if not self.unroll.is_straight(steps):
            return borders + sum(_SHARED_CODE[count] for count in pixels)
        loads = _APART_CODE * steps * self.unroll.apart
        return borders + loads + sum(_CODE[count] + _STEP_CODE[count] * steps for count in pixels)

    def _line(self, geometry: Geometry, pixels: int, patch: int = 0) -> int:
        """Return instructions for pixels that patches may span.

        Patch by patch, then two, then one.
        """
        channels, steps = geometry.output.channels, geometry.segments.steps
        quads, patch = -(-channels // QUAD), patch or geometry.patch_pixels
        patches, rest = divmod(pixels, patch)
        looped = 1 + 3 * turns(steps, self.unroll) + self.is_planar
        # For four channels: 12 a step and 55 beside them for two pixels, 7 and 33 for a single one,
        # which takes an odd step alone.
        block = ((12 + 2 * self.unroll.apart) * steps + looped + 55) * quads + 12
        single = (7 * steps + steps % 2 + looped + 33) * quads + 3 * steps + 60
        group = 7 * steps + 30
        blocks, last = patches * patch // TOGETHER, rest // TOGETHER
        by_two = 40 + 8 * steps + 40
        filled = by_two if patch == TOGETHER else 40 + group * patch // GROUP
        calls = patches * filled + last * by_two
        borders = 3 * channels // 2 + 40 if self.is_planar else 0
        beside = _gathered(geometry, pixels) if not geometry.is_pointwise else 0
        return (blocks + last) * block + calls + rest % TOGETHER * single + borders + beside


def _gathered(geometry: Geometry, pixels: int) -> int:
    """Return instructions of a row beside those that widen.

    A call each kernel row, taps at its ends.
    """
    rows, columns = geometry.windows.rows, geometry.windows.columns
    last = (geometry.output.width - 1) * columns.stride - columns.before
    sides = (columns.before > 0) + (last + (columns.taps - 1) * columns.dilation >= columns.size)
    length = geometry.segments.length
    end = max(13 * length - 34, 0) if geometry.image.channels % QUAD else 150
    groups = -(-pixels // GROUP)
    return rows.taps * (16 * groups + sides * end) + geometry.segments.steps * groups


class _Emitter:
    def __init__(self, layer: Layer, unroll: Unroll) -> None:
        self.unroll = unroll
        self.layer = layer
        self.geometry = geometry = Geometry.of(layer.node)
        self.x, y = layer.input_rows(0), layer.output_rows()
        self.outputs = Outputs(y)
        packed = packed_of(layer.node, self.outputs.row.bytes if self.outputs.row else 1)
        assert packed is not None, "refusal() was asked"
        self.packed = packed
        are_whole = self.x.is_whole and y.is_whole
        self.flat = geometry.is_pointwise and are_whole and self.outputs.row is None
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        self.pixels = geometry.patch_pixels
        if self.flat:
            self.pixels = geometry.pixels_of_calls(layer.call_rows)
        shape = (1, geometry.segments.elements(self.pixels))
        self.patch = ir.Buffer("scratch", shape, DType.INT16, alignment=4)
        self.patches, self.single = (
            Patches(self.x, geometry, segments, self.patch)
            for segments in (geometry.segments, geometry.segments.single)
        )

    def function(self, name: str) -> ir.PrimFunc:
        body = seq(self.clear_gaps(), self.flat_pixels() if self.flat else self.rows())
        return self.layer.function(name, self.patch, body)

    def clear_gaps(self) -> ir.Stmt:
        """Set what patches hold beside values of the input."""
        has_singles = self.flat or self.geometry.output.width % TOGETHER
        single = self.single.clear_gap(1) if has_singles else seq()
        return seq(self.patches.clear_gap(self.pixels), single)

    def patches_of(self, pixels: int) -> Patches:
        """Return those that the product of so many pixels reads."""
        return self.single if pixels == 1 else self.patches

    def flat_pixels(self) -> ir.Stmt:
        """Emit all pixels of the row range as one line: rows of any width fill whole patches."""
        width, layer = self.geometry.output.width, self.layer
        first, pixels = layer.y0 * width, (layer.y1 - layer.y0) * width

        def place(rows: Rows, pixel: te.Expr) -> ir.BufferArgument:
            return rows.at(pixel // width, pixel % width, 0)

        def some(pixel: te.Expr, count: int) -> ir.Stmt:
            group = count if count % GROUP == 0 else 1
            segment = te.as_expr(0, DType.INT32)
            filled = (
                self.patches_of(count).widen(group, place(self.x, pixel + lane), segment, lane)
                for lane in range(0, count, group)
            )
            return seq(*filled, self.product(count, pixel // width, pixel % width))

        def tail(start: te.Expr) -> ir.Stmt:
            """Emit what is left behind whole patches, or one of their groups."""
            stop = first + pixels

            def pairs(count: te.Expr) -> ir.Stmt:
                return seq(
                    loop("pair", 0, count, lambda n: some(start + n * TOGETHER, TOGETHER)),
                    loop("pixel", start + count * TOGETHER, stop, lambda p: some(p, 1)),
                )

            if self.pixels == TOGETHER:
                return loop("pixel", start, stop, lambda p: some(p, 1))
            return let("pairs", te.maximum(stop - start, 0) // TOGETHER, pairs)

        def both(patches: te.Expr) -> ir.Stmt:
            whole = loop("patch", 0, patches, lambda n: some(first + n * self.pixels, self.pixels))
            if width % self.pixels == 0:
                return whole
            return seq(whole, let("start", first + patches * self.pixels, tail))

        # An empty range may be given with y1 < y0, which must not reach rows before y0.
        return let("patches", te.maximum(pixels, 0) // self.pixels, both)

    def rows(self) -> ir.Stmt:
        width = self.geometry.output.width
        patches, rest = divmod(width, self.pixels)

        def some(row: te.Expr, column: te.Expr, count: int) -> ir.Stmt:
            together = 1 if count == TOGETHER else count

            def fill(n: te.Expr) -> ir.Stmt:
                return self.patches_of(count).gather(row, column + n, together, n)

            return seq(each("pixel", count // together, fill), self.product(count, row, column))

        def parts(row: te.Expr) -> ir.Stmt:
            """Emit whole patches, then two pixels and one."""
            whole = loop("patch", 0, patches, lambda n: some(row, n * self.pixels, self.pixels))
            last = te.as_expr(width - rest, DType.INT32)
            pair = [some(row, last, TOGETHER)] * (rest // TOGETHER)
            single = [some(row, last + rest - 1, 1)] * (rest % TOGETHER)
            return seq(whole, *pair, *single, self.outputs.borders(row))

        return loop("row", self.layer.y0, self.layer.y1, parts)

    def product(self, pixels: int, row: te.Expr, column: te.Expr) -> ir.Stmt:
        """Emit the micro-kernel for all channels of some pixels, from a column of a row on."""
        return call(
            self.kernel(pixels),
            at(self.patch, 0, 0),
            at(self.packed.words, 0, 0, 0),
            *self.outputs.at(row, column),
        )

    def kernel(self, pixels: int) -> KernelDescription:
        steps, channels = self.geometry.segments.steps, self.geometry.output.channels
        return gemm(pixels, steps, channels, self.packed.rescaling, self.unroll, self.outputs.row)
