"""Patches: the inputs of some pixels, widened to int16 and interleaved as GEMM reads them.

Each block of a patch holds two pixels, word by word in turns, or a single one.  It consists of
segments, runs of values that are contiguous in the input: kernel rows, or single taps where the
kernel is dilated.
Four bytes of a segment make two steps of the product, bytes (0, 2) and (1, 3), because that is
what SXTB16 gives; the up to three bytes left of each segment (`tails`) are paired across segments
behind all quads.  Weights are packed in this order, so that it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.arm_dsp import patch_sums
from microtir.kernels.common import gather, micro_kernel
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Rows
from microtir.kernels.common.macro_kernel import Count, Pixel, Source
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import at, each, let, load, loop, seq, store, when
from microtir.kernels.common.weights import QUAD
from microtir.schedule import KernelDescription
from microtir.tir import ir

TOGETHER = 2  # pixels of a block
GROUP = 4  # pixels that are widened together
# A patch of more than one group is worth its memory while it is small.
_PATCH = 512
_GROUPS = 4
_QUADS_PER_TURN = 2
_IMMEDIATE = 4095  # largest number that ADD takes


@dataclass(frozen=True, slots=True)
class Segments:
    """`count` runs of `length` values each, of `at_once` pixels of a block, perhaps with sums."""

    count: int
    length: int
    at_once: int = TOGETHER
    has_sums: bool = False

    @staticmethod
    def of(geometry: Geometry) -> Segments:
        """Return the runs of a window."""
        has_sums = geometry.has_wide_weights
        return Segments(geometry.runs, geometry.run_values, has_sums=has_sums)

    @property
    def single(self) -> Segments:
        """Return those of a pixel whose words follow each other."""
        return replace(self, at_once=1)

    @property
    def lanes(self) -> int:
        """Return int16 values of a step of a block: two for each pixel."""
        return 2 * self.at_once

    @property
    def quads(self) -> int:
        """Return groups of four values of one segment."""
        return self.length // QUAD

    @property
    def tails(self) -> int:
        """Return values of one segment behind its quads."""
        return self.length % QUAD

    @property
    def tail_steps(self) -> int:
        """Return steps that hold the n-th tail value of all segments."""
        return -(-self.count // 2)

    @property
    def widened(self) -> int:
        """Return the steps of inputs, two values each."""
        return self.count * self.quads * 2 + self.tails * self.tail_steps

    @property
    def sums(self) -> int:
        """Return the steps of their sums, behind them."""
        return -(-self.widened // patch_sums.ADDED) if self.has_sums else 0

    @property
    def steps(self) -> int:
        return self.widened + self.sums

    @property
    def block(self) -> int:
        """Return int16 values of a block."""
        return self.steps * self.lanes

    def elements(self, pixels: int) -> int:
        return -(-pixels // self.at_once) * self.block

    def lane(self, pixel: te.ExprLike) -> te.Expr:
        p = te.as_expr(pixel, DType.INT32)
        return p // self.at_once * self.block + p % self.at_once * 2

    def quad_index(self, segment: te.ExprLike) -> te.Expr:
        return te.as_expr(segment, DType.INT32) * (self.quads * 2 * self.lanes)

    def tail_index(self, segment: te.Expr) -> te.Expr:
        """Return where the first tail value of a segment lies.

        The next ones follow by `tail_stride`.
        """
        words = segment // 2 + self.count * self.quads * 2
        return words * self.lanes + segment % 2

    @property
    def tail_stride(self) -> int:
        return self.tail_steps * self.lanes

    @property
    def has_gap(self) -> bool:
        """Return whether the last tail of an odd number of segments has no partner."""
        return self.tails > 0 and self.count % 2 == 1

    def arrange(self, weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """Arrange weights (channels, count, length) as the patch: (channels, steps, 2)."""
        channels, split = len(weights), self.quads * QUAD
        quads = weights[:, :, :split].reshape(channels, self.count * self.quads, 2, 2)
        paired = quads.transpose(0, 1, 3, 2).reshape(channels, -1, 2)
        tails = weights[:, :, split:]
        if self.count % 2:
            tails = np.pad(tails, ((0, 0), (0, 1), (0, 0)))
        rows = tails.reshape(channels, self.tail_steps, 2, self.tails).transpose(0, 3, 1, 2)
        return np.concatenate([paired, rows.reshape(channels, -1, 2)], axis=1)


@made_once
def widen(pixels: int, segments: Segments, stride: int) -> KernelDescription:
    """Widen one segment of `pixels` (1, or whole groups) neighbouring pixels into a patch.

    Args:
        pixels: a single one is written into the lane that the pointers begin at; of a patch
            for one, 1.
        segments: those of the patch.
        stride: bytes between the inputs of neighbouring pixels.

    Returns:
        Parameters: the segment of the first pixel, its quads in the patch, and its first tail
        value in the patch if there are tails.
    """
    quads, tails, lanes = segments.quads, segments.tails, segments.lanes
    x = ir.Buffer("x", ((pixels - 1) * stride + segments.length,), DType.INT8)
    last = segments.elements(pixels) - segments.block + 2 if pixels > 1 else 0  # its lane
    span = last + (quads * 2 - 1) * lanes + 2 if quads else 1
    patch = ir.Buffer("patch", (span,), DType.INT16, alignment=4)
    left = ir.Buffer("tail", (max(tails - 1, 0) * segments.tail_stride + last + 1,), DType.INT16)

    def widened(pixel: te.Expr, value: te.ExprLike) -> te.Expr:
        return te.cast(DType.INT16, load(x, pixel * stride + value))

    def quad(pixel: te.Expr, number: te.Expr) -> ir.Stmt:
        return seq(*(
            store(
                patch,
                (segments.lane(pixel) + number * (2 * lanes) + byte % 2 * lanes + byte // 2,),
                widened(pixel, number * QUAD + byte),
            )
            for byte in range(QUAD)
        ))  # fmt: skip

    def body(pixel: te.Expr) -> ir.Stmt:
        return seq(
            loop("quad", 0, quads, lambda number: quad(pixel, number)) if quads else seq(),
            *(
                store(left, (segments.lane(pixel) + n * segments.tail_stride,),
                      widened(pixel, quads * QUAD + n))
                for n in range(tails)
            ),
        )  # fmt: skip

    whole = pixels == 1 and not tails  # no other segment matters
    behind = "_sums" * segments.has_sums
    shape = f"{segments.length}" if whole else f"{segments.length}of{segments.count}{behind}"
    kind = "pixel" if segments.at_once == 1 else f"patch{pixels}"
    return micro_kernel.describe(
        f"{kind}_{shape}" + (f"_{stride}" if pixels > 1 else ""),
        (f"Widens {segments.length} values of {pixels} pixel{'s' * (pixels > 1)} into a patch",),
        (x, patch, left) if tails else (x, patch),
        (patch, left) if tails else (patch,),
        loop("pixel", 0, pixels, body),
        f"kernels/patch{GROUP if pixels > 1 else 1}.j2",
        _values(pixels, segments, stride),
        stack_bytes=16 if pixels == 1 else 36 if pixels == GROUP else 40,
    )


def _values(pixels: int, segments: Segments, stride: int) -> dict[str, object]:
    quads, tails = segments.quads, segments.tails
    at_once, block = min(pixels, GROUP), segments.block * DType.INT16.bytes
    bases = ("r2", "r12")  # of each block
    return {
        "single": segments.at_once == 1,
        **micro_kernel.repeated(quads, _QUADS_PER_TURN, _QUADS_PER_TURN),
        "quad_bytes": str(quads * QUAD),
        "block_bytes": str(block),
        "adds_block": block <= _IMMEDIATE,
        "groups": str(pixels // GROUP) if pixels > GROUP else "",
        "group_bytes": str(2 * block),
        "quads_left": str(2 * block - quads * 2 * segments.lanes * DType.INT16.bytes),
        "group_step": str(GROUP * stride - quads * QUAD),
        "tails": [
            {
                "source": str(p * stride + n),
                "base": bases[p // TOGETHER],
                "target": str(p % TOGETHER * 4 + n * segments.tail_stride * 2),
            }
            for n in range(tails)
            for p in range(at_once)
        ],
        **{f"pixel{p}": str(p * stride) for p in range(1, at_once)},
    }


class _Widened(gather.Gather):
    """Windows of one or several blocks in `patch`, as `segments` say."""

    moves_pixels = True

    def __init__(self, x: Rows, geometry: Geometry, segments: Segments, patch: ir.Buffer) -> None:
        super().__init__(x, geometry)
        self.segments, self.patch = segments, patch

    def clear_gap(self, pixels: int) -> ir.Stmt:
        """Set the lane without a partner, which meets weights of 0, to some number."""
        segments = self.segments
        if not segments.has_gap:
            return seq()
        gap = segments.tail_index(te.as_expr(segments.count, DType.INT32))

        def pixel(p: te.Expr) -> ir.Stmt:
            first = gap + segments.lane(p)
            strides = (n * segments.tail_stride for n in range(segments.tails))
            return seq(*(store(self.patch, (0, first + stride), 0) for stride in strides))

        return each("pixel", pixels, pixel)

    def added_up(self, pixels: int) -> ir.Stmt:
        """Emit the sums of so many pixels."""
        segments, blocks = self.segments, -(-pixels // self.segments.at_once)
        if not segments.has_sums:
            return seq()
        kernel, behind = patch_sums.sums_of(segments.widened, segments.at_once), segments.widened

        def block(n: te.Expr) -> ir.Stmt:
            first = n * segments.block
            sums = at(self.patch, 0, first + behind * segments.lanes)
            return micro_kernel.call(kernel, at(self.patch, 0, first), sums)

        return each("block", blocks, block)

    def widen(self, pixels: int, source: ir.BufferArgument, segment: te.Expr, lane: te.ExprLike
              ) -> ir.Stmt:  # fmt: skip
        """Emit one segment, from `source` on, into the patch."""
        segments = self.segments
        offset = segments.lane(lane)
        args = [source, at(self.patch, 0, segments.quad_index(segment) + offset)]
        if segments.tails:
            args.append(at(self.patch, 0, segments.tail_index(segment) + offset))
        return micro_kernel.call(widen(pixels, segments, self.geometry.pixel_stride), *args)

    def run(
        self, source: ir.BufferArgument, pixels: int, ky: te.Expr, number: te.Expr, lane: te.Expr
    ) -> ir.Stmt:
        return self.widen(pixels, source, ky * self.geometry.runs_of_row + number, lane)

    def tap(self, y: te.Expr, column: te.Expr, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        channels = self.geometry.image.channels
        if channels % QUAD:
            return self._each_value(ky, kx, lane, lambda channel: te.cast(
                DType.INT16, load(self.x.buffer, self.x.slot(y), column, channel + self.x.first)
            ))  # fmt: skip
        single = widen(1, Segments(1, channels, self.segments.at_once), 0)
        target = at(self.patch, 0, self._tap_index(ky, kx, lane))
        return micro_kernel.call(single, self.x.at(y, column, 0), target)

    def outside(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        channels, zero = self.geometry.image.channels, self.zero_point
        if channels % QUAD:
            return self._each_value(ky, kx, lane, lambda _: te.as_expr(zero, DType.INT16))
        base, lanes = self._tap_index(ky, kx, lane), self.segments.lanes
        return loop(
            "step", 0, channels // 2,
            lambda step: seq(
                *(store(self.patch, (0, base + step * lanes + n), zero) for n in range(2))
            ),
        )  # fmt: skip

    def row_outside(self, ky: te.Expr, pixels: int, lane: te.Expr) -> ir.Stmt:
        segments, taps = self.segments, self.geometry.windows.columns.taps
        at_once = segments.at_once
        if segments.tails or pixels % at_once:
            return each("pixel", pixels, lambda n: loop(
                "kx", 0, taps, lambda kx: self.outside(ky, kx, lane + n)
            ))  # fmt: skip
        size = taps * self.geometry.image.channels * at_once

        def block(n: te.Expr) -> ir.Stmt:
            base = ky * size + segments.lane(lane + n * at_once)
            return loop("i", 0, size, lambda i: store(self.patch, (0, base + i), self.zero_point))

        return each("block", pixels // at_once, block)

    def _tap_index(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> te.Expr:
        """Return where a tap of whole quads begins in the patch."""
        steps = self.geometry.image.channels // 2
        tap = ky * self.geometry.windows.columns.taps + kx
        return tap * (steps * self.segments.lanes) + self.segments.lane(lane)

    def _each_value(
        self, ky: te.Expr, kx: te.Expr, lane: te.Expr, value: Callable[[te.Expr], te.Expr]
    ) -> ir.Stmt:
        """Store `value(channel)` of one tap where its segment has it."""
        segments, channels = self.segments, self.geometry.image.channels
        runs = self.geometry.runs_of_row
        segment = ky if runs == 1 else ky * runs + kx
        split, lanes = segments.quads * QUAD, segments.lanes

        def put(channel: te.Expr) -> ir.Stmt:
            def place(n: te.Expr) -> ir.Stmt:
                quad = n // QUAD * (2 * lanes) + n % 2 * lanes + n % QUAD // 2
                front = segments.quad_index(segment) + quad
                back = segments.tail_index(segment) + (n - split) * segments.tail_stride
                behind = store(self.patch, (0, back + segments.lane(lane)), value(channel))
                if split == 0:
                    return behind
                before = store(self.patch, (0, front + segments.lane(lane)), value(channel))
                return when(n < split, before, behind) if segments.tails else before

            return let("n", kx * channels + channel if runs == 1 else channel, place)

        return loop("channel", 0, channels, put)


def patch_buffer(values: int) -> ir.Buffer:
    """Return the scratch of patches of so many values at most."""
    # One row, so that whoever follows rows of buffers sees one span of bytes.
    return ir.Buffer("scratch", (1, values), DType.INT16, alignment=4)


class WidenedPatch(Source):
    """Patches in scratch: on a line they are widened pixel by pixel, else windows are gathered.

    Args:
        x: the input.
        geometry: of the layer.
        patch: large enough for the largest one.
        is_line: whether patches span rows.
    """

    def __init__(self, x: Rows, geometry: Geometry, patch: ir.Buffer, *, is_line: bool) -> None:
        self.x, self.is_line = x, is_line
        segments = Segments.of(geometry)
        self.patch = self.scratch = patch
        self.blocks, self.single = (
            _Widened(x, geometry, s, self.patch) for s in (segments, segments.single)
        )

    def prepare(self, counts: Sequence[int]) -> ir.Stmt:
        """Set what patches hold beside values of the input."""
        first, *_ = counts
        if self.blocks.segments.has_sums:  # they take it for a value: each block sets it anew
            return seq()
        many = self.blocks.clear_gap(first) if first > 1 else seq()
        return seq(many, self.single.clear_gap(1) if 1 in counts else seq())

    def block(self, pixel: Pixel, count: int) -> ir.Stmt:
        patch, values = self.single if count == 1 else self.blocks, self._values(pixel, count)
        if not patch.segments.has_sums:
            return values
        return seq(patch.clear_gap(count), values, patch.added_up(count))

    def _values(self, pixel: Pixel, count: int) -> ir.Stmt:
        patch = self.single if count == 1 else self.blocks
        if not self.is_line:
            at_once = 1 if count == TOGETHER else count
            return each(
                "pixel", count // at_once,
                lambda n: patch.windows(pixel.row, pixel.column + n, at_once, n),
            )  # fmt: skip
        group = count if count % GROUP == 0 else 1
        segment = te.as_expr(0, DType.INT32)
        places = ((pixel.ahead(lane), lane) for lane in range(0, count, group))
        return seq(*(
            patch.widen(group, self.x.at(place.row, place.column, 0), segment, lane)
            for place, lane in places
        ))  # fmt: skip

    def at(self, _pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.patch, 0, 0)


def patch_counts(geometry: Geometry, call_rows: int = 0) -> tuple[Count, ...]:
    """Return the pixels of a patch, then those of smaller ones.

    A patch is groups of pixels that leave few of a row over.  Where windows may leave the image,
    and are gathered tap by tap, it is one group.

    Args:
        geometry: of the layer.
        call_rows: rows of each call, if these are few and follow each other; else 0.
    """
    width, pixels = geometry.output.width, TOGETHER
    if geometry.is_pointwise and call_rows * width == 1:
        return (Count(1, "pixel"),)
    if not (geometry.is_pointwise and 0 < call_rows * width < GROUP):
        size = Segments.of(geometry).elements(GROUP) * DType.INT16.bytes
        most = max(1, min(_GROUPS, _PATCH // max(size, 1), width // GROUP))
        groups = range(most if geometry.is_pointwise else 1, 0, -1)
        pixels = GROUP * min(groups, key=lambda n: width % (GROUP * n))
    pair = (Count(TOGETHER, "pair"),) if pixels > TOGETHER else ()
    return (Count(pixels, "patch"), *pair, Count(1, "pixel"))
