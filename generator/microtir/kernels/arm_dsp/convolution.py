"""Convolutions as matrix products: patches of some pixels times packed weights.

Any kernel size, stride, dilation and padding.  Values outside the image are the input's zero
point, so that the full sum of weights folds into the bias; only patches that leave the image are
gathered pixel by pixel.  A depthwise convolution of one input channel is a convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.gather import Patches
from microtir.kernels.arm_dsp.gemm_kernels import CHANNELS, STEPS, TOGETHER, gemm, pack_quads
from microtir.kernels.arm_dsp.outputs import LONGEST, sink_of
from microtir.kernels.arm_dsp.outputs import planes_refusal as planar_refusal
from microtir.kernels.arm_dsp.patch import GROUP, Segments
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import (
    Count,
    Pixel,
    Product,
    Source,
    Tile,
    cut,
    lines,
    macro_kernel,
)
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.micro_kernel import Unroll, turns
from microtir.kernels.common.packing import constant, requantised
from microtir.kernels.common.refusals import int8_refusal, mixed_refusal
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.statements import at, each, seq
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
        spans_rows = self._spans_rows(geometry)
        few = calls.rows if calls.alone and spans_rows else 0
        counts = _counts(geometry.pixels_of_calls(few))
        return sum(
            number * self._line(geometry, pixels, counts)
            for number, pixels in lines(geometry.output, calls, spans_rows=spans_rows)
        )

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: patches in scratch, products of many pixels, then of one."""
        geometry, x = Geometry.of(layer.node), layer.input_rows(0)
        sink, planes = sink_of(layer)
        packed = packed_of(layer.node, planes.bytes if planes else 1)
        assert packed is not None, "reject() was asked"
        is_line = geometry.is_pointwise and x.is_whole and sink.is_line
        pixels = geometry.pixels_of_calls(layer.call_rows if is_line else 0)
        steps, channels = geometry.segments.steps, geometry.output.channels

        def kernel(count: int) -> KernelDescription:
            return gemm(count, steps, channels, packed.rescaling, self.unroll, planes)

        tile = Tile(_counts(pixels), (Product(kernel, (at(packed.words, 0, 0, 0),)),))
        source = _WidenedPatch(x, geometry, pixels, is_line=is_line)
        return macro_kernel(layer, name, geometry.output.width, source, tile, sink)

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

    def _line(self, geometry: Geometry, pixels: int, counts: tuple[Count, ...]) -> int:
        """Return the instructions for pixels of a line, cut by these counts."""
        channels, steps = geometry.output.channels, geometry.segments.steps
        quads = -(-channels // QUAD)
        looped = 1 + 3 * turns(steps, self.unroll) + self.is_planar
        # For four channels: 12 a step and 55 beside them for two pixels, 7 and 33 for a single one,
        # which takes an odd step alone.
        pair = ((12 + 2 * self.unroll.apart) * steps + looped + 55) * quads + 12
        single = (7 * steps + steps % 2 + looped + 33) * quads + 3 * steps + 60

        def block(count: int) -> int:
            if count == 1:
                return single
            group = (7 * steps + 30) * count // GROUP
            return count // TOGETHER * pair + 40 + (group if count > TOGETHER else 8 * steps + 40)

        borders = 3 * channels // 2 + 40 if self.is_planar else 0
        beside = _gathered(geometry, pixels) if not geometry.is_pointwise else 0
        return sum(b.times * block(b.pixels) for b in cut(pixels, counts)) + borders + beside


def _counts(pixels: int) -> tuple[Count, ...]:
    """Return the patch of so many pixels, then smaller ones."""
    pair = (Count(TOGETHER, "pair"),) if pixels > TOGETHER else ()
    return (Count(pixels, "patch"), *pair, Count(1, "pixel"))


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


class _WidenedPatch(Source):
    """Patches of windows, widened: on a line pixel by pixel, else gathered.

    Args:
        x: the input.
        geometry: of the layer.
        pixels: of the largest patch.
        is_line: whether patches span rows.
    """

    def __init__(self, x: Rows, geometry: Geometry, pixels: int, *, is_line: bool) -> None:
        self.x, self.is_line = x, is_line
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        shape = (1, geometry.segments.elements(pixels))
        self.patch = self.scratch = ir.Buffer("scratch", shape, DType.INT16, alignment=4)
        self.patches, self.single = (
            Patches(x, geometry, segments, self.patch)
            for segments in (geometry.segments, geometry.segments.single)
        )

    def prepare(self, counts: Sequence[int]) -> ir.Stmt:
        """Set what patches hold beside values of the input."""
        first, *_ = counts
        many = self.patches.clear_gap(first) if first > 1 else seq()
        return seq(many, self.single.clear_gap(1) if 1 in counts else seq())

    def block(self, pixel: Pixel, count: int) -> ir.Stmt:
        patches = self.single if count == 1 else self.patches
        if not self.is_line:
            together = 1 if count == TOGETHER else count
            return each(
                "pixel", count // together,
                lambda n: patches.gather(pixel.row, pixel.column + n, together, n),
            )  # fmt: skip
        group = count if count % GROUP == 0 else 1
        segment = te.as_expr(0, DType.INT32)
        places = ((pixel.ahead(lane), lane) for lane in range(0, count, group))
        return seq(*(
            patches.widen(group, self.x.at(place.row, place.column, 0), segment, lane)
            for place, lane in places
        ))  # fmt: skip

    def at(self, _pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.patch, 0, 0)
