"""Patches of convolutions, gathered from the input.

Windows inside the image are widened segment by segment; only those that leave it are gathered tap
by tap.  Values outside are the input's zero point.
"""

from __future__ import annotations

from collections.abc import Callable

from microtir import te
from microtir.kernels.arm_dsp.patch import Segments, widen
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Rows
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, each, let, load, loop, seq, store, when
from microtir.kernels.common.weights import QUAD
from microtir.tir import ir
from microtir.tir.dtype import DType


class Patches:
    """Fills `patch` from the rows of an input, as `segments` say."""

    def __init__(self, x: Rows, geometry: Geometry, segments: Segments, patch: ir.Buffer) -> None:
        self.x = x
        self.geometry = geometry
        self.segments = segments
        self.patch = patch
        self.zero_point = x.type.quant.zero_point

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

    def widen(self, pixels: int, source: ir.BufferArgument, segment: te.Expr, lane: te.ExprLike
              ) -> ir.Stmt:  # fmt: skip
        """Emit one segment, from `source` on, into the patch."""
        segments = self.segments
        offset = segments.lane(lane)
        args = [source, at(self.patch, 0, segments.quad_index(segment) + offset)]
        if segments.tails:
            args.append(at(self.patch, 0, segments.tail_index(segment) + offset))
        return call(widen(pixels, segments, self.geometry.pixel_stride), *args)

    def gather(self, row: te.Expr, column: te.Expr, pixels: int, lane: te.ExprLike) -> ir.Stmt:
        """Emit `pixels` neighbouring output pixels, in the patch from `lane` on."""
        rows, columns = self.geometry.windows.rows, self.geometry.windows.columns
        left, first = column * columns.stride - columns.before, te.as_expr(lane, DType.INT32)

        def kernel_row(ky: te.Expr) -> ir.Stmt:
            def inside(y: te.Expr) -> ir.Stmt:
                there = (y >= 0) & (y < rows.size)
                return when(
                    there,
                    self._gather_row(ky, y, left, pixels, first),
                    self._fill_rows(ky, pixels, first),
                )

            return let("y", row * rows.stride - rows.before + ky * rows.dilation, inside)

        return loop("ky", 0, rows.taps, kernel_row)

    def _gather_row(
        self, ky: te.Expr, y: te.Expr, left: te.Expr, pixels: int, lane: te.Expr
    ) -> ir.Stmt:
        """Emit one kernel row of some pixels.

        At once where none leaves the image, else one by one.
        """
        columns = self.geometry.windows.columns
        if pixels == 1:
            return self._gather_pixel(ky, y, left, lane)
        reach = (pixels - 1) * columns.stride
        return when(
            self._is_inside(left, reach),
            self._segments_of(ky, y, left, pixels, lane),
            seq(*(
                self._gather_pixel(ky, y, left + n * columns.stride, lane + n)
                for n in range(pixels)
            )),
        )  # fmt: skip

    def _is_inside(self, left: te.Expr, reach: int) -> te.Expr:
        columns = self.geometry.windows.columns
        last = (columns.taps - 1) * columns.dilation + reach
        return (left >= 0) & (left + last < columns.size)

    def _segments_of(
        self, ky: te.Expr, y: te.Expr, left: te.Expr, pixels: int, lane: te.ExprLike
    ) -> ir.Stmt:
        """Emit all segments of a kernel row that lies inside the image."""
        count, dilation = self.geometry.per_row, self.geometry.windows.columns.dilation
        return loop(
            "part", 0, count,
            lambda n: self.widen(
                pixels, self.x.at(y, left + n * dilation, 0), ky * count + n, lane
            ),
        )  # fmt: skip

    def _gather_pixel(self, ky: te.Expr, y: te.Expr, left: te.Expr, lane: te.Expr) -> ir.Stmt:
        columns, channels = self.geometry.windows.columns, self.geometry.image.channels

        def tap(kx: te.Expr) -> ir.Stmt:
            def inside(column: te.Expr) -> ir.Stmt:
                there = (column >= 0) & (column < columns.size)
                fill = self._fill_tap(ky, kx, lane)
                if channels % QUAD:
                    copy = self._copy_tap(ky, kx, lane, y, column)
                else:
                    single = widen(1, Segments(1, channels, self.segments.together), 0)
                    source = self.x.at(y, column, 0)
                    copy = call(single, source, at(self.patch, 0, self._tap_index(ky, kx, lane)))
                return when(there, copy, fill)

            return let("x_col", left + kx * columns.dilation, inside)

        return when(
            self._is_inside(left, 0),
            self._segments_of(ky, y, left, 1, lane),
            loop("kx", 0, columns.taps, tap),
        )

    def _tap_index(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> te.Expr:
        """Return where a tap of whole quads begins in the patch."""
        steps = self.geometry.image.channels // 2
        tap = ky * self.geometry.windows.columns.taps + kx
        return tap * (steps * self.segments.lanes) + self.segments.lane(lane)

    def _fill_rows(self, ky: te.Expr, pixels: int, lane: te.Expr) -> ir.Stmt:
        """Emit a kernel row outside the image, of pixels from `lane` on."""
        segments, taps = self.segments, self.geometry.windows.columns.taps
        together = segments.together
        if segments.tails or pixels % together:
            return each("pixel", pixels, lambda n: loop(
                "kx", 0, taps, lambda kx: self._fill_tap(ky, kx, lane + n)
            ))  # fmt: skip
        size = taps * self.geometry.image.channels * together

        def block(n: te.Expr) -> ir.Stmt:
            base = ky * size + segments.lane(lane + n * together)
            return loop("i", 0, size, lambda i: store(self.patch, (0, base + i), self.zero_point))

        return each("block", pixels // together, block)

    def _fill_tap(self, ky: te.Expr, kx: te.Expr, lane: te.Expr) -> ir.Stmt:
        """Emit a tap outside the image: the zero point, for which the bias accounts."""
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

    def _copy_tap(
        self, ky: te.Expr, kx: te.Expr, lane: te.Expr, y: te.Expr, column: te.Expr
    ) -> ir.Stmt:
        """Emit a tap whose channels are not whole quads, value by value."""

        def value(channel: te.Expr) -> te.Expr:
            stored = load(self.x.buffer, self.x.slot(y), column, channel)
            return te.cast(DType.INT16, stored)

        return self._each_value(ky, kx, lane, value)

    def _each_value(
        self, ky: te.Expr, kx: te.Expr, lane: te.Expr, value: Callable[[te.Expr], te.Expr]
    ) -> ir.Stmt:
        """Store `value(channel)` of one tap where its segment has it."""
        segments, channels = self.segments, self.geometry.image.channels
        joined = self.geometry.per_row == 1
        segment = ky if joined else ky * self.geometry.per_row + kx
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

            return let("n", kx * channels + channel if joined else channel, place)

        return loop("channel", 0, channels, put)
