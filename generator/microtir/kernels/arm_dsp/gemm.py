"""Convolutions as matrix products: patches of some pixels times packed weights.

Any kernel size, stride, dilation and padding.  Values outside the image are the input's zero
point, so that the full sum of weights folds into the bias; only patches that leave the image are
gathered pixel by pixel.  A depthwise convolution of one input channel is a convolution.

The micro-kernels compute blocks of 2 pixels, or one pixel, by four channels.  Strides and counts
are arguments, so that all layers of a model share a kernel for each way to requantise.  Sums of few
steps may be unrolled entirely: such a kernel is for one number of steps.  A single pixel leaves
registers for the weights of two steps, which one instruction loads: seven instructions a step.  Of
an odd number of steps the first is taken alone, by a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import float_rescaling, lane_sums, patch_sums
from microtir.kernels.arm_dsp.outputs import COLUMNS, LONGEST, PlaneRow, borders_cost, sink_of
from microtir.kernels.arm_dsp.outputs import planes_refusal as planar_refusal
from microtir.kernels.arm_dsp.patch import (
    GROUP,
    TOGETHER,
    Segments,
    WidenedPatch,
    patch_buffer,
    patch_counts,
)
from microtir.kernels.common import macro_kernel, packing, phase_kernel, refusals
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.micro_kernel import Sizes, Unroll, describe, turns, unrolled
from microtir.kernels.common.phases import Phase, SpreadPixels
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, WORDS, Rescaling
from microtir.kernels.common.statements import at, each, let, load, loop, seq, store
from microtir.kernels.common.weights import QUAD, channel_quads, matrix_of, pack_pairs
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import Calls, LayoutKind, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_IMMEDIATE = 4095  # largest offset of a load or store
_FAR = 1 << 24  # bytes from one channel to another that constants hold

# Bytes of a kernel beside its steps, of a step, and what a layer is charged of one that it shares.
_CODE = {TOGETHER: 350, 1: 230}
_STEP_CODE = {TOGETHER: 48, 1: 28}
_SINGLE_LOADS_CODE = 8  # more where words are loaded one by one
_SHARED_CODE = {TOGETHER: 330, 1: 130}
_BORDERS_CODE = 60
STEPS = (1 << 13) - 1  # the most that a kernel is given; MOVW loads their bytes
CHANNELS = 1 << 12
PIXELS = 1 << 6
_STEP_BYTES = 48  # of the instructions of a step for two pixels that loads two words at a time
_PAIR_BYTES = 56  # of two steps for a single one
_SINGLE_LOADS_BYTES = 8  # more where a step for two pixels loads word by word
CONSTANT_LINES = QUAD * WORDS // 2  # of two words each
_CHANNEL_BIT = 8  # of the word with the shift: ASR by a register reads only the byte below


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Constants of a layer as `pack_quads` arranges them, and how its sums are rescaled."""

    words: ir.Buffer
    rescaling: Rescaling


def packed_of(
    node: Node, distance: int = 1, *, at_once: int = QUAD, values: int = 0
) -> Packed | None:
    """Return the constants of a layer; None: weights or factors do not fit the packed form.

    Args:
        node: the layer.
        distance: bytes from a channel of its output to the next.
        at_once: channels of a turn of the kernel.
        values: of a pixel as the kernel reads it: those of the window in their order, then any that
            count for nothing; 0: in the order of patches.
    """
    matrix, segments = matrix_of(node), Segments.of(Geometry.of(node))
    matrix = matrix.reshape(len(matrix), segments.count, segments.length)
    if values:
        behind = values - segments.count * segments.length
        matrix = np.pad(matrix.reshape(len(matrix), 1, -1), ((0, 0), (0, 0), (0, behind)))
        segments = Segments(1, values)
    groups = Geometry.of(node).groups
    size = len(matrix) // groups
    of_group = channel_quads(size, at_once)
    order = [group * size + n for group in range(groups) for n in of_group]
    lanes = _lanes(matrix[order], segments)
    factors = packing.requantised(node)
    if lanes is None or factors is None:
        return None
    starts = np.array(of_group[::at_once] * groups) * distance
    words = pack_quads(lanes, factors.constants[order], starts, at_once)
    return Packed(packing.constant("packed", words), factors.rescaling)


def _lanes(matrix: npt.NDArray[np.int8], segments: Segments) -> npt.NDArray[np.int16] | None:
    """Return dual-packed weights (channels, count, length), int8 or wide, as patches meet them."""
    if not segments.has_sums:
        return pack_pairs(segments.arrange(matrix))
    number = patch_sums.shared_part(matrix)
    if number is None:
        return None
    rest = segments.arrange((matrix.astype(np.int16) - number).astype(np.int8))
    return pack_pairs(patch_sums.with_sums(rest, number, segments.sums), matrix)


def refusal(node: Node) -> Refusal | None:
    """Return what speaks against it where all channels are summed."""
    return refusals.int8_refusal(node) or refusals.mixed_refusal(node) or of_groups(node)


@of_node
def of_groups(node: Node) -> Refusal | None:
    """Return what speaks against it, whatever the groups of channels.

    Int8 over one image, weights and factors that fit the packed form.
    """
    reason = refusals.int8_refusal(node)
    if reason is None and not isinstance(node.op, Conv2D):
        reason = refusals.mixed_refusal(node)
    if reason is not None:
        return reason
    geometry = Geometry.of(node)
    if geometry.image.images != 1 and not geometry.is_pointwise:
        return Refusal.IMAGES
    channels, segments = geometry.output.channels, Segments.of(geometry)
    if channels < QUAD:
        return Refusal.FEW_CHANNELS
    tails = segments.tails * segments.tail_stride * DType.INT16.bytes
    in_reach = max((GROUP - 1) * (geometry.pixel_stride + 1), tails) < _IMMEDIATE
    if not in_reach or channels * geometry.groups > CHANNELS or segments.steps > STEPS:
        return Refusal.SIZES
    return Refusal.FORM if packed_of(node) is None else None


def planes_refusal(node: Node) -> Refusal | None:
    """Return what speaks against writing planes, beside what `refusal` knows."""
    output = Geometry.of(node).output
    if output.channels * LONGEST >= _FAR:
        return Refusal.SIZES
    return planar_refusal(output) or refusal(node)


@dataclass(frozen=True, slots=True)
class Part:
    """A convolution that is a layer, or computes some pixels of one.

    Attributes:
        node: the convolution.
        rows: of its output that are computed.
        counts: of pixels of a patch.
        sink: of its outputs.
        planes: where these go, if they do not follow each other.
        step: pixels of the layer's output from one of its pixels to the next.
        is_line: whether patches span rows.
    """

    node: Node
    rows: tuple[te.ExprLike, te.ExprLike]
    counts: tuple[macro_kernel.Count, ...]
    sink: macro_kernel.Sink
    planes: PlaneRow | None = None
    step: int = 1
    is_line: bool = False


class Gemm(float_rescaling.FloatRescaling, phase_kernel.PhaseKernel):
    """Patches of pixels times packed weights of four channels.

    Args:
        name: of the kernel.
        unroll: of the sums.
        writes: NHWC, or planes.
    """

    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    depends_on_calls = has_wide_weights = True

    def __init__(self, name: str, unroll: Unroll, writes: LayoutKind) -> None:
        self.name, self.unroll, self.writes = name, unroll, writes
        # Less where words are loaded one by one.
        self.cycles = (112 if unroll.single_loads else 135) + 2 * self.is_planar

    @property
    def is_planar(self) -> bool:
        return self.writes is not LayoutKind.NHWC

    def reject(self, node: Node) -> Refusal | None:
        return planes_refusal(node) if self.is_planar else of_groups(node)

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        geometry = Geometry.of(node)
        patch, *_ = self._counts(geometry, calls)
        return Segments.of(geometry).elements(patch.pixels) * DType.INT16.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions from counts of the emulated Cortex-M4.

        Patches span the rows of a call where these follow each other.
        """
        geometry = Geometry.of(node)
        output, spans_rows = geometry.output, self._spans_rows(geometry)
        blocks = macro_kernel.all_blocks(
            output, calls, self._counts(geometry, calls), spans_rows=spans_rows
        )
        beside = borders_cost(output, self.writes)
        if not geometry.is_pointwise:
            beside += output.images * _gathered(geometry)
        product = sum(n * self._block(geometry, pixels, beside_relu(node)) for n, pixels in blocks)
        return geometry.groups * (beside + product)

    def packed_bytes(self, node: Node) -> int:
        geometry = Geometry.of(node)
        values = 2 * Segments.of(geometry).steps
        return geometry.groups * packing.channel_bytes(geometry.output.channels, QUAD, values)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: patches in scratch, products of many pixels, then of one."""
        geometry, x = Geometry.of(layer.node), layer.input_rows(0)
        sink, planes = sink_of(layer)
        is_line = geometry.is_pointwise and x.is_whole and sink.is_line
        counts = patch_counts(geometry, layer.call_rows if is_line else 0)
        patch = patch_buffer(Segments.of(geometry).elements(counts[0].pixels))
        part = Part(layer.node, (layer.y0, layer.y1), counts, sink, planes, is_line=is_line)
        return layer.function(name, patch, self.loops(part, x, patch))

    def phase_loops(self, phase: Phase, x: Rows, y: Rows, scratch: ir.Buffer) -> ir.Stmt:
        """Return the loops over the pixels of a phase: they may be those of a line."""
        geometry = Geometry.of(phase.node)
        height, is_line = geometry.output.height, geometry.is_pointwise and phase.is_whole
        counts = patch_counts(geometry, height if is_line else 0)
        sink = macro_kernel.Nhwc(y) if is_line else SpreadPixels(y, phase)
        part = Part(phase.node, (0, height), counts, sink, step=phase.step, is_line=is_line)
        return self.loops(part, x, scratch)

    def loops(self, part: Part, x: Rows, patch: ir.Buffer) -> ir.Stmt:
        """Return the loops over the groups of a part and over its pixels."""
        geometry, planes = Geometry.of(part.node), part.planes
        packed = refusals.asked(self.packed(part.node, planes.bytes if planes else 1))
        channels = geometry.output.channels

        def kernel(pixels: int) -> KernelDescription:
            return self.product(pixels, part, packed.rescaling)

        def group(number: te.Expr) -> ir.Stmt:
            of_group = replace(x, first=number * geometry.image.channels)
            source = WidenedPatch(of_group, geometry, patch, is_line=part.is_line)
            words = at(packed.words, number * -(-channels // QUAD), 0, 0)
            product = macro_kernel.Product(kernel, (words,), 0 if planes else number * channels)
            tile = macro_kernel.Tile(part.counts, (product,))
            return macro_kernel.pixel_loops(
                part.rows, geometry.output.width, source, tile, part.sink
            )

        return each("group", geometry.groups, group)

    def packed(self, node: Node, distance: int) -> Packed | None:
        """Return the constants of a layer whose channels are so many bytes from each other."""
        return packed_of(node, distance)

    def product(self, pixels: int, part: Part, rescaling: Rescaling) -> KernelDescription:
        """Return the micro-kernel for so many pixels of a part."""
        geometry, planes = Geometry.of(part.node), part.planes
        steps, channels = Segments.of(geometry).steps, geometry.output.channels
        distance = channels * geometry.groups * part.step
        return gemm(pixels, steps, channels, rescaling, self.unroll, planes, distance)

    def _spans_rows(self, geometry: Geometry) -> bool:
        return geometry.is_pointwise and not self.is_planar

    def _counts(self, geometry: Geometry, calls: Calls) -> tuple[macro_kernel.Count, ...]:
        is_line = calls.alone and self._spans_rows(geometry)
        return patch_counts(geometry, calls.rows if is_line else 0)

    def code_bytes(self, node: Node) -> int:
        """Return bytes of the kernels for two pixels and for one.

        Those with a loop are shared by layers.
        """
        geometry = Geometry.of(node)
        steps = Segments.of(geometry).steps
        pixels = (TOGETHER, 1) if geometry.output.width % TOGETHER else (TOGETHER,)
        borders = _BORDERS_CODE if self.is_planar else 0
        if not self.unroll.is_straight(steps):
            return borders + sum(_SHARED_CODE[count] for count in pixels)
        loads = _SINGLE_LOADS_CODE * steps * self.unroll.single_loads
        return borders + loads + sum(_CODE[count] + _STEP_CODE[count] * steps for count in pixels)

    def _block(self, geometry: Geometry, pixels: int, rescaled: int) -> int:
        segments, quads = Segments.of(geometry), -(-geometry.output.channels // QUAD)
        steps = segments.steps
        added = [patch_sums.instructions(segments.widened, n) * segments.has_sums for n in (1, 2)]
        rescaled *= QUAD * min(pixels, TOGETHER)
        looped = 1 + 3 * turns(steps, self.unroll) + self.is_planar + rescaled
        # For four channels: 12 a step and 55 beside them for two pixels, 7 and 33 for a single one,
        # which takes an odd step alone.
        if pixels == 1:
            return (7 * steps + steps % 2 + looped + 33) * quads + 3 * steps + 60 + added[0]
        pair = ((12 + 2 * self.unroll.single_loads) * steps + looped + 55) * quads + 12 + added[1]
        groups = (7 * steps + 30) * pixels // GROUP
        widened = 40 + (groups if pixels > TOGETHER else 8 * steps + 40)
        return pixels // TOGETHER * pair + widened


@of_node
def beside_relu(node: Node) -> int:
    """Return the instructions that rescale a value, beside the four that a ReLU takes."""
    return refusals.asked(packing.requantised(node)).rescaling.instructions - 4


def _gathered(geometry: Geometry) -> int:
    """Return instructions beside those that widen: calls, taps at the ends, kernel rows outside."""
    rows, columns, output = geometry.windows.rows, geometry.windows.columns, geometry.output
    channels, outside = geometry.image.channels, columns.outside(output.width)
    length, steps, call = geometry.run_values, Segments.of(geometry).steps, 16
    groups = -(-output.width // GROUP)
    ends, beyond = 150 * ((outside[0] > 0) + (outside[-1] > 0)), 0
    if channels % QUAD:
        call = 24
        if geometry.groups > 1:
            length, call = geometry.row_values, 25 * geometry.runs_of_row
        end = 13 * length + 90 if length > 9 else max(16 * length - 45, 0)  # short: no loops
        ends = end * sum(n > 0 for n in outside)
        beyond = 14 * length * output.width * sum(rows.outside(output.height))
    return output.height * (rows.taps * (call * groups + ends) + steps * groups) + beyond


# --- micro-kernels --------------------------------------------------------------------------------


@made_once
def gemm(
    pixels: int,
    steps: int,
    channels: int,
    rescaling: Rescaling,
    unroll: Unroll,
    planes: PlaneRow | None = None,
    distance: int = 0,
) -> KernelDescription:
    """Compute two pixels, or a single one, by four channels per iteration.

    Args:
        pixels: of the patch, an even number; or 1, the first one of a patch.
        steps: of two values each.
        channels: of the output, at least 4.
        rescaling: of the sums.
        unroll: of the steps.
        planes: where outputs go, if they do not follow each other.
        distance: elements from the outputs of a pixel to those of the next, if that is more.

    Returns:
        Parameters: patch (blocks, steps, pixels of a block, 2) int16, what `pack_quads` gives,
        outputs (blocks, pixels of a block, channels); then steps, lines, quads, channels, and
        blocks if there may be several.  Planes are a row (channels, columns) and the column of the
        first pixel; the number of columns follows that of channels.
    """
    at_once, sizes = min(pixels, TOGETHER), Sizes()
    count = sizes.number("steps", steps, 1, STEPS)
    lines = sizes.number("lines", steps + CONSTANT_LINES, 1, STEPS + CONSTANT_LINES)
    sizes.hold(number_of(lines) >= number_of(count) + CONSTANT_LINES)
    quads = sizes.number("quads", -(-channels // QUAD), 1, CHANNELS // QUAD)
    spread = (channels, distance) if distance > channels else None
    width = sizes.number("channels", distance or channels, QUAD, CHANNELS)
    column = ir.Var("column", low=0, high=COLUMNS) if planes else None
    columns = sizes.number("columns", planes.columns, 1, COLUMNS) if planes else width
    blocks = sizes.number("blocks", pixels // 2, 1, PIXELS // 2) if at_once > 1 else 1
    patch = ir.Buffer("patch", (blocks, count, at_once, 2), DType.INT16, alignment=4)
    packed = ir.Buffer("packed", (quads, lines, 2), DType.INT32)
    y = _outputs(sizes, pixels, spread, blocks, width)
    if planes is not None and column is not None:
        y = ir.Buffer("y", (width, columns), planes.dtype)
        sizes.hold(number_of(column) + number_of(blocks) * at_once <= number_of(columns))
    turn = Turn(patch, packed, y, rescaling, at_once, number_of(count), column, spread)
    return describe(
        _name(at_once, steps, rescaling, planes, unroll, spread),
        (_about(at_once, steps if unroll.is_straight(steps) else None, planes),),
        (patch, packed, y),
        (y,),
        each("block", blocks,
             lambda block: loop("quad", 0, number_of(quads), partial(turn.whole, block))),
        f"kernels/gemm{at_once}.j2",
        {
            **_unrolled(at_once, steps, unroll), "rescaling": rescaling.values(),
            "planes": planes.values() if planes else "",
        },
        stack_bytes=68 if at_once > 1 else 48,
        sizes=sizes,
        scalars=() if column is None else (column,),
    )  # fmt: skip


def _outputs(
    sizes: Sizes, pixels: int, spread: tuple[int, int] | None, blocks: ir.Dim, width: ir.Var
) -> ir.Buffer:
    """Return the outputs of some blocks; those of pixels that lie apart have a number of elements.

    Args:
        sizes: to which that number is added.
        pixels: the most.
        spread: channels of pixels that lie apart, and elements from one to the next.
        blocks: of pixels.
        width: channels of pixels that follow each other.
    """
    at_once = min(pixels, TOGETHER)
    if spread is None:
        return ir.Buffer("y", (blocks, at_once, width), DType.INT8)
    (channels, distance), used = spread, number_of(blocks) * at_once
    reach = (pixels - 1) * distance + channels
    span = sizes.number("span", reach, channels, PIXELS * CHANNELS)
    sizes.hold(used * distance <= number_of(span) + (distance - channels))
    return ir.Buffer("y", (span,), DType.INT8)


Value = Callable[[te.Expr, int], te.Expr]
"""The value of a pixel of a block that has a number, 0 or 1, in a step."""


class Turn:
    """The meaning of a turn: one block of pixels by four channels, or by eight.

    A line of `packed` is what a step multiplies by: two pairs of channels, or four.
    """

    def __init__(
        self,
        patch: ir.Buffer,
        packed: ir.Buffer,
        y: ir.Buffer,
        rescaling: Rescaling,
        at_once: int,
        steps: te.Expr,
        column: ir.Var | None = None,
        spread: tuple[int, int] | None = None,
    ) -> None:
        self.patch, self.packed, self.y = patch, packed, y
        self.rescaling = rescaling
        self.pixels = at_once
        self.column = column  # of the first pixel, where outputs are planes
        self.steps = steps
        pairs = packed.shape[2]
        assert isinstance(pairs, int)
        self.pairs, self.channels = pairs, 2 * pairs
        self.spread = spread  # channels, and elements from pixel to pixel
        width = spread[0] if spread else y.shape[2 if column is None else 0]
        self.last = number_of(width) - self.channels
        self.sums = lane_sums.local_sums(at_once * pairs)

    def whole(self, block: te.Expr, quad: te.Expr) -> ir.Stmt:
        low, high = self.sums

        def outputs(pixel: te.Expr) -> ir.Stmt:
            return seq(
                *(self.output(block, quad, pixel, number) for number in range(self.channels))
            )

        whole = seq(
            lane_sums.cleared(self.pixels * self.pairs, low, high),
            self.products(block, quad),
            loop("pixel", 0, self.pixels, outputs),
        )
        return ir.Allocate(low, ir.Allocate(high, whole))

    def products(self, block: te.Expr, quad: te.Expr) -> ir.Stmt:
        """Emit all steps of the sums."""

        def step(number: te.Expr) -> ir.Stmt:
            return self.step(quad, number, lambda p, n: load(self.patch, block, number, p, n))

        return loop("step", 0, self.steps, step)

    def step(self, quad: te.Expr, number: te.Expr, value: Value) -> ir.Stmt:
        """Add the two values of a step of each pixel, times the weights of all pairs."""
        lanes = ((pair, lane) for pair in range(self.pairs) for lane in range(2))
        return seq(*(self.multiply(quad, number, value, *lane) for lane in lanes))

    def multiply(
        self, quad: te.Expr, step: te.Expr, value: Value, pair: int, number: int
    ) -> ir.Stmt:
        """Add value `number` of a step, times the weights of a pair, to each pixel's sums."""
        low, high = self.sums
        word = load(self.packed, quad, step, pair)
        lane = word >> 16 if number else (word & 0xFFFF ^ 0x8000) - 0x8000

        def products(a: te.Expr, b: te.Expr) -> ir.Stmt:
            def pixel(p: te.Expr) -> ir.Stmt:
                place = p * self.pairs + pair
                return let("value", te.cast(DType.INT32, value(p, number)), lambda v: seq(
                    store(low, (place,), load(low, place) + v * a),
                    store(high, (place,), load(high, place) + v * b),
                ))  # fmt: skip

            return loop("pixel", 0, self.pixels, pixel)

        return lane_sums.split_lane(lane, products)

    def output(self, block: te.Expr, quad: te.Expr, pixel: te.Expr, number: int) -> ir.Stmt:
        def word(n: int) -> te.Expr:
            line, place = divmod(number * WORDS + n, self.pairs)
            return load(self.packed, quad, self.steps + line, place)

        total = load(self.sums[number % 2], pixel * self.pairs + number // 2) * 2 + word(BIAS)
        shift = word(SHIFT) & ((1 << _CHANNEL_BIT) - 1)
        value = self.rescaling.rescale(total, word(MULTIPLIER), word(ROUNDING), shift)
        channel = te.minimum(quad * self.channels, self.last) + number
        place: tuple[te.Expr, ...] = (block, pixel, channel)
        if self.column is not None:
            place = channel, number_of(self.column) + block * self.pixels + pixel
        elif self.spread is not None:
            place = ((block * self.pixels + pixel) * self.spread[1] + channel,)
        stored = te.cast(self.y.dtype, value)
        return let("value", stored, partial(store, self.y, place))


def _unrolled(at_once: int, steps: int, unroll: Unroll) -> dict[str, str | bool]:
    """Return how sums are unrolled: step by step, or two at a time for a single pixel."""
    if at_once > 1:
        return unrolled(steps, unroll, _STEP_BYTES + _SINGLE_LOADS_BYTES * unroll.single_loads)
    pairs = unrolled(-(-steps // 2), unroll.of_pairs(), _PAIR_BYTES)
    return {**pairs, "odd": steps % 2 == 1}


def _name(
    at_once: int, steps: int, rescaling: Rescaling, planes: PlaneRow | None, unroll: Unroll,
    spread: tuple[int, int] | None,
) -> str:  # fmt: skip
    every = "_{}_every_{}".format(*spread) if spread else ""
    loop = "_odd" if at_once == 1 and steps % 2 else ""
    special = f"_{steps}" if unroll.is_straight(steps) else loop
    where = f"_planes{planes.dtype.bits}" if planes else ""
    loads = "_apart" if unroll.single_loads and at_once > 1 else ""
    return f"gemm{at_once}{special}_{rescaling.name}{where}{loads}{every}"


def _about(at_once: int, steps: int | None, planes: PlaneRow | None) -> str:
    values = "" if steps is None else f" of {2 * steps} values"
    where = ", into planes" if planes else ""
    return f"Matrix product: {pixels_named(at_once)}{values} by four channels per iteration{where}"


def pixels_named(count: int) -> str:
    """Return how comments call so many pixels."""
    return "1 pixel" if count == 1 else f"{count} pixels"


def number_of(extent: ir.Dim) -> te.Expr:
    """Return an extent as an expression."""
    return te.as_expr(extent, DType.INT32)


def pack_quads(
    lanes: npt.NDArray[np.int16],
    constants: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int64],
    at_once: int = QUAD,
) -> npt.NDArray[np.int32]:
    """Return weights and constants in the order in which the kernels read them.

    Args:
        lanes: dual-packed weights of channel pairs, (2 * quads, steps, 2).
        constants: words of the channels of all quads, the shift last, (4 * quads, 4).
        starts: bytes from the outputs of a pixel to the first channel of each quad.
        at_once: channels of a turn: a quad, or two of them.

    Returns:
        (quads, steps + 8, 2): for each quad the lanes of its pairs step by step, then its
        constants. Where its first channel lies stands in the upper bits of its shifts.  Eight
        channels have lines of four words instead.
    """
    steps, pairs = lanes.shape[1], at_once // 2
    wide = lanes.astype(np.int64).reshape(-1, pairs, steps, 2)
    words = (wide[..., 1] * (1 << 16) + (wide[..., 0] & 0xFFFF)).transpose(0, 2, 1)
    rows = constants.astype(np.int64).reshape(-1, at_once, WORDS)
    rows[:, :, SHIFT] |= starts[:, np.newaxis] << _CHANNEL_BIT
    lines = np.concatenate([words, rows.reshape(-1, CONSTANT_LINES, pairs)], axis=1)
    return lines.astype(np.int32)
