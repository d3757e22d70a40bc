"""Convolutions as matrix products of bytes: of the input itself, or of a patch of a pixel or two.

What other products find widened in a patch the micro-kernels widen as they read it, for every four
channels: three instructions more for sixteen products, and no patch of int16.  Where a window is
one tap that is never outside the image they read the input where it lies, in a ring or not, without
scratch.  Other windows are gathered, at half the bytes; a small one of a single pixel on the stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import float_rescaling, gemm
from microtir.kernels.arm_dsp.copying import copy, fill, fill_spread, spread
from microtir.kernels.arm_dsp.patch import TOGETHER, patch_counts
from microtir.kernels.common import refusals
from microtir.kernels.common.bordered_rows import DirectRows
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.gather import Gather
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import (
    Count,
    Nhwc,
    Pixel,
    Product,
    Source,
    Tile,
    lines,
    macro_kernel,
)
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.micro_kernel import Sizes, Unroll, call, describe, turns, unrolled
from microtir.kernels.common.packing import channel_bytes
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.statements import at, each, load, loop, seq, store
from microtir.kernels.common.weights import OCTET, QUAD
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import IN_ONE_CALL, Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

WORD = 4  # values
UNROLL = Unroll(8, 8)  # of words
_WORD_BYTES = {TOGETHER: 120, 1: 64}  # of the instructions for a word
_TURNS_BYTES = 112  # where the words of two pixels lie in turns
UNROLL_OCTETS = Unroll(8, 8)
_OCTETS_BYTES = 124
_IMMEDIATE = 4095  # largest offset of a load, and number that ADD takes
_CODE, _WORD_CODE = {TOGETHER: 350, 1: 230}, {TOGETHER: 112, 1: 64}
_OCTETS_CODE, _OCTETS_WORD_CODE = 380, 124
_GATHER_CODE = 400
_ON_STACK = 64  # bytes of a patch there


def _reads_input(geometry: Geometry) -> bool:
    """Return whether every window is one tap inside the image."""
    windows = geometry.windows
    return windows.rows.taps == windows.columns.taps == 1 and not windows.clip(geometry.output)


def _values(geometry: Geometry) -> int:
    """Return the values of a pixel, the last word filled up."""
    return -(-geometry.values // WORD) * WORD


def _by_octets(geometry: Geometry) -> bool:
    """Return whether a single pixel is computed by eight channels per iteration."""
    return geometry.output.channels >= OCTET


@of_node
def _single_packed_of(node: Node) -> gemm.Packed | None:
    geometry = Geometry.of(node)
    at_once = OCTET if _by_octets(geometry) else QUAD
    return gemm.packed_of(node, at_once=at_once, values=_values(geometry))


class GemmBytes(float_rescaling.FloatRescaling):
    """The input as it is, or windows of bytes, times packed weights.

    `pixels`, one or two, are taken at a time; what is left of a row of two is a single one.
    Those that come singly are computed by eight channels per iteration where there are so many.
    """

    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    cycles = 120
    depends_on_calls = True

    def __init__(self, name: str, pixels: int) -> None:
        self.name, self.pixels = name, pixels

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it, beside what speaks against patches."""
        reason = gemm.refusal(node)
        if reason is not None:
            return reason
        geometry = Geometry.of(node)
        reads_input, is_single = _reads_input(geometry), self.pixels == 1
        # Only a patch of one pixel may be filled up.
        if geometry.image.channels % WORD and (reads_input or not is_single):
            return Refusal.SIZES
        if TOGETHER * self._distance(geometry) > _IMMEDIATE:
            return Refusal.SIZES
        if is_single:
            if reads_input and not _by_octets(geometry):
                return Refusal.FEW_CHANNELS
            return Refusal.FORM if _single_packed_of(node) is None else None
        # Blocks span what lies between pixels, also behind the last one.
        width = geometry.output.width // TOGETHER * TOGETHER
        beyond = width * geometry.windows.columns.stride > geometry.image.width
        return Refusal.WINDOWS if reads_input and beyond else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of a patch, where there is one that is not on the stack."""
        geometry = Geometry.of(node)
        size = self.pixels * _values(geometry)
        on_stack = self.pixels == 1 and size <= _ON_STACK
        return 0 if on_stack or _reads_input(geometry) else size

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions by counts of kernels on the Cortex-M4.

        Lines are rows, or all of a call.
        """
        geometry, rescaled = Geometry.of(node), gemm.beside_relu(node)
        return sum(
            number * self._line(geometry, pixels, rescaled)
            for number, pixels in lines(geometry.output, calls, spans_rows=geometry.is_pointwise)
        )

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels for two pixels and for one."""
        geometry = Geometry.of(node)
        words = _values(geometry) // WORD
        gather = 0 if _reads_input(geometry) else _GATHER_CODE
        if self._is_by_octets(geometry):
            repeated = words if UNROLL_OCTETS.is_straight(words) else 1 + UNROLL_OCTETS.turn
            return gather + _OCTETS_CODE + _OCTETS_WORD_CODE * repeated
        printed = words if UNROLL.is_straight(words) else 1 + UNROLL.turn
        odd = self.pixels == 1 or geometry.output.width % TOGETHER
        counts = (*((TOGETHER,) * (self.pixels > 1)), *((1,) if odd else ()))
        return gather + sum(_CODE[n] + _WORD_CODE[n] * printed for n in counts)

    def packed_bytes(self, node: Node) -> int:
        geometry = Geometry.of(node)
        at_once = OCTET if self._is_by_octets(geometry) else QUAD
        return channel_bytes(geometry.output.channels, at_once, _values(geometry))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        geometry, x = Geometry.of(layer.node), layer.input_rows(0)
        packs = _single_packed_of if self.pixels == 1 else gemm.packed_of
        packed = refusals.asked(packs(layer.node))
        channels, values = geometry.output.channels, _values(geometry)
        source: Source = DirectRows(x, geometry, is_line=geometry.is_pointwise and x.is_whole)
        if not _reads_input(geometry):
            source = _BytePatch(
                x, geometry, self.pixels, self.scratch_bytes(layer.node, IN_ONE_CALL)
            )

        def kernel(pixels: int) -> KernelDescription:
            if self._is_by_octets(geometry):
                return gemm_bytes_octets(values, channels, packed.rescaling)
            distance = geometry.pixel_stride if _reads_input(geometry) and pixels > 1 else 0
            return gemm_bytes(pixels, distance, values, channels, packed.rescaling)

        tile = Tile(self._counts(geometry), (Product(kernel, (at(packed.words, 0, 0, 0),)),))
        sink = Nhwc(layer.output_rows())
        return macro_kernel(layer, name, geometry.output.width, source, tile, sink)

    def _counts(self, geometry: Geometry) -> tuple[Count, ...]:
        """Return the pixels of a call: where they are read in the input, of several blocks."""
        single = Count(1, "pixel")
        if self.pixels == 1:
            return (single,)
        pair = Count(TOGETHER, "block")
        if not _reads_input(geometry):
            return (pair, single)
        most = patch_counts(geometry)[0].pixels
        return (Count(most, "part", unit=TOGETHER), pair, single)

    def _is_by_octets(self, geometry: Geometry) -> bool:
        return self.pixels == 1 and _by_octets(geometry)

    def _distance(self, geometry: Geometry) -> int:
        return geometry.pixel_stride if _reads_input(geometry) else _values(geometry)

    def _line(self, geometry: Geometry, pixels: int, rescaled: int) -> int:
        """Return the instructions for pixels of one line: block by block, then one by one."""
        words, quads = _values(geometry) // WORD, -(-geometry.output.channels // QUAD)
        looped = 1 + 3 * turns(words, UNROLL)
        of_word = 30 if _reads_input(geometry) else 28
        block = (of_word * words + looped + 55 + 2 * QUAD * rescaled) * quads + 14
        single = (16 * words + looped + 33 + QUAD * rescaled) * quads + 45
        if self._is_by_octets(geometry):
            octets = -(-geometry.output.channels // OCTET)
            looped = 1 + 3 * turns(words, UNROLL_OCTETS)
            single = (31 * words + looped + 60 + OCTET * rescaled) * octets + 45
        if _reads_input(geometry):
            most = self._counts(geometry)[0].pixels
            calls = 60 * -(-pixels // most) if self.pixels > 1 else 0
            return self._blocks(pixels, block, single) + calls
        taps = geometry.windows.rows.taps
        copied = taps * (30 + geometry.row_values * 5 // 8) + 20
        return pixels * copied + self._blocks(pixels, block + 60, single)

    def _blocks(self, pixels: int, block: int, single: int) -> int:
        """Return the instructions for pixels, two by two if they are taken so."""
        pairs, rest = divmod(pixels, TOGETHER) if self.pixels > 1 else (0, pixels)
        return pairs * block + rest * single


class _BytePatch(Source):
    """Windows are gathered, tap behind tap: in scratch, or on the stack where that has no bytes.

    Those of two pixels lie word by word in turns: one pointer reads them, however long windows
    are, and layers share a kernel.
    """

    def __init__(self, x: Rows, geometry: Geometry, pixels: int, scratch_bytes: int) -> None:
        self.x, self.geometry = x, geometry
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        shape = (1, pixels * _values(geometry))
        if scratch_bytes:
            self.patch = self.scratch = ir.Buffer("scratch", shape, DType.INT8, alignment=4)
        else:
            self.patch = self.local = ir.Buffer("patch", shape, DType.INT8, ir.Scope.LOCAL)

    def prepare(self, _counts: Sequence[int]) -> ir.Stmt:
        """Set what the last word has beyond the window, which meets weights of 0."""
        first, stop = self.geometry.values, _values(self.geometry)
        return loop("i", first, stop, lambda i: store(self.patch, (0, i), 0))

    def block(self, pixel: Pixel, count: int) -> ir.Stmt:
        gather = _GatherBytes(self.x, self.geometry, self.patch, count)
        return gather.windows(pixel.row, pixel.column, count)

    def at(self, _pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.patch, 0, 0)


class _GatherBytes(Gather):
    """Windows of `every` pixels in `patch`, of which each has one word in turn."""

    prints_taps = True

    def __init__(self, x: Rows, geometry: Geometry, patch: ir.Buffer, every: int) -> None:
        super().__init__(x, geometry)
        self.patch, self.every = patch, every

    def run(
        self, source: ir.BufferArgument, pixels: int, ky: te.Expr, number: te.Expr, lane: te.Expr
    ) -> ir.Stmt:
        size = self.geometry.run_values
        moved = copy(size) if self.every == 1 else spread(size, self.every)
        return call(moved, source, self._target(ky, number, lane))

    def tap(self, y: te.Expr, column: te.Expr, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        channels = self.geometry.image.channels
        moved = copy(channels) if self.every == 1 else spread(channels, self.every)
        return call(moved, self.x.at(y, column, 0), self._target(ky, kx, lane))

    def outside(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        channels = self.geometry.image.channels
        filled = fill(channels, self.zero_point, DType.INT8)
        if self.every > 1:
            filled = fill_spread(channels, self.every, self.zero_point)
        return call(filled, self._target(ky, kx, lane))

    def row_outside(self, ky: te.Expr, pixels: int, lane: te.Expr) -> ir.Stmt:
        filled = fill(self.geometry.row_values * pixels, self.zero_point, DType.INT8)
        return call(filled, self._target(ky, te.as_expr(0, DType.INT32), lane))

    def _target(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.BufferArgument:
        """Return where a tap of a pixel begins, or a run that begins with it."""
        row, tap = self.geometry.row_values, self.geometry.image.channels
        return at(self.patch, 0, ky * (row * self.every) + lane * WORD + kx * (tap * self.every))


# --- micro-kernels --------------------------------------------------------------------------------


@made_once
def gemm_bytes(
    pixels: int, distance: int, values: int, channels: int, rescaling: Rescaling
) -> KernelDescription:
    """Compute two pixels, or a single one, by four channels per iteration.

    Args:
        pixels: an even number, or 1.
        distance: bytes from one pixel to the next, at least `values`; a single one has none, nor
            have two whose words lie in turns.
        values: of a pixel, whole words.
        channels: of the output, at least 4.
        rescaling: of the sums.

    Returns:
        Parameters: the first pixel, what `pack_quads` gives, outputs (blocks, pixels of a block,
        channels); then words, lines, quads, channels, and blocks if there may be several.
    """
    at_once = min(pixels, TOGETHER)
    assert distance or pixels == at_once, "pixels without a distance form one block"
    sizes = Sizes()
    most = distance // WORD if distance else gemm.STEPS // 2
    words = sizes.number("words", values // WORD, 1, most)
    steps = 2 * gemm.number_of(words)
    lines = sizes.number(
        "lines", values // 2 + gemm.CONSTANT_LINES, 1, gemm.STEPS + gemm.CONSTANT_LINES
    )
    sizes.hold(gemm.number_of(lines) >= steps + gemm.CONSTANT_LINES)
    quads = sizes.number("quads", -(-channels // QUAD), 1, gemm.CHANNELS // QUAD)
    width = sizes.number("channels", channels, QUAD, gemm.CHANNELS)
    blocks = sizes.number("blocks", pixels // TOGETHER, 1, gemm.PIXELS // 2) if distance else 1
    shape = (blocks, at_once * distance) if distance else (words, at_once * WORD)
    x = ir.Buffer("x", shape, DType.INT8, alignment=1 if distance or at_once == 1 else 4)
    packed = ir.Buffer("packed", (quads, lines, 2), DType.INT32)
    y = ir.Buffer("y", (blocks, at_once, width), DType.INT8)
    turn = _Turn(x, packed, y, rescaling, at_once, steps, distance)
    special = values // WORD if UNROLL.is_straight(values // WORD) else None
    straight = "" if special is None else f"_{special}"
    suffix = f"_{distance}" if distance else "_in_turns" if at_once > 1 else ""
    step_bytes = _TURNS_BYTES if at_once > 1 and not distance else _WORD_BYTES[at_once]
    return describe(
        f"gemm_bytes{at_once}{straight}{suffix}_{rescaling.name}",
        (f"Matrix product of bytes: {gemm.pixels_named(at_once)} by four channels per iteration",),
        (x, packed, y),
        (y,),
        each(
            "block", blocks,
            lambda block: loop("quad", 0, gemm.number_of(quads), partial(turn.whole, block)),
        ),
        f"kernels/gemm_bytes{at_once}.j2",
        {
            **unrolled(values // WORD, UNROLL, step_bytes),
            "rescaling": rescaling.values(),
            "pixel": str(distance) if distance else "",
            "block": str(TOGETHER * distance),
        },
        stack_bytes=68 if at_once > 1 else 48,
        sizes=sizes,
    )  # fmt: skip


@made_once
def gemm_bytes_octets(values: int, channels: int, rescaling: Rescaling) -> KernelDescription:
    """Describe a pixel by eight channels per iteration: a word of it is widened half as often.

    Args:
        values: of the pixel, whole words.
        channels: of the output, at least 8.
        rescaling: of the sums.

    Returns:
        Parameters: the pixel, what `pack_quads` gives for eight channels together, outputs; then
        words, lines and octets.
    """
    sizes = Sizes()
    words = sizes.number("words", values // WORD, 1, gemm.STEPS // 2)
    steps = 2 * gemm.number_of(words)
    lines = sizes.number(
        "lines", values // 2 + gemm.CONSTANT_LINES, 1, gemm.STEPS + gemm.CONSTANT_LINES
    )
    sizes.hold(gemm.number_of(lines) >= steps + gemm.CONSTANT_LINES)
    octets = sizes.number("octets", -(-channels // OCTET), 1, gemm.CHANNELS // OCTET)
    width = sizes.number("channels", channels, OCTET, gemm.CHANNELS)
    x = ir.Buffer("x", (words, WORD), DType.INT8)
    packed = ir.Buffer("packed", (octets, lines, OCTET // 2), DType.INT32)
    y = ir.Buffer("y", (1, 1, width), DType.INT8)
    turn = _Turn(x, packed, y, rescaling, 1, steps, 0)
    special = values // WORD if UNROLL_OCTETS.is_straight(values // WORD) else None
    straight = "" if special is None else f"_{special}"
    return describe(
        f"gemm_bytes_octets{straight}_{rescaling.name}",
        ("Matrix product of bytes: a pixel by eight channels per iteration",),
        (x, packed, y),
        (y,),
        loop(
            "octet", 0, gemm.number_of(octets), partial(turn.whole, te.as_expr(0, DType.INT32))
        ),
        "kernels/gemm_bytes_octets.j2",
        {
            **unrolled(values // WORD, UNROLL_OCTETS, _OCTETS_BYTES),
            "rescaling": rescaling.values(),
        },
        stack_bytes=56,
        sizes=sizes,
    )  # fmt: skip


class _Turn(gemm.Turn):
    """The meaning of a turn.

    `x` is (blocks, bytes of a block), or words of a single pixel or of two in turns.
    """

    def __init__(
        self,
        x: ir.Buffer,
        packed: ir.Buffer,
        y: ir.Buffer,
        rescaling: Rescaling,
        at_once: int,
        steps: te.Expr,
        distance: int,
    ) -> None:
        super().__init__(x, packed, y, rescaling, at_once, steps)
        self.distance = distance

    def products(self, block: te.Expr, quad: te.Expr) -> ir.Stmt:
        """Emit bytes 0 and 2 of each word, then 1 and 3, as SXTB16 gives them."""

        def half(word: te.Expr, first: int) -> ir.Stmt:
            def value(pixel: te.Expr, number: int) -> te.Expr:
                byte = first + 2 * number
                if not self.distance:
                    return load(self.patch, word, pixel * WORD + byte)
                return load(self.patch, block, pixel * self.distance + word * WORD + byte)

            return self.step(quad, word * 2 + first, value)

        return loop("word", 0, self.steps // 2, lambda word: seq(half(word, 0), half(word, 1)))
