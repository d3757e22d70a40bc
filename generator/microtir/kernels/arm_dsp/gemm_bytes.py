"""Convolutions as matrix products of bytes: of the input itself, or of a patch of a pixel or two.

What kernels widen as they read it needs no patch of int16: where a window is one tap that is never
outside the image they read the input where it lies, in a ring or not, without scratch.  Other
windows are gathered, at half the bytes; a small one of a single pixel on the stack.
"""

from __future__ import annotations

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import convolution
from microtir.kernels.arm_dsp.copying import copy, fill, fill_spread, spread
from microtir.kernels.arm_dsp.gemm_bytes_kernels import (
    UNROLL,
    UNROLL_OCTETS,
    WORD,
    gemm_bytes,
    gemm_bytes_octets,
)
from microtir.kernels.arm_dsp.gemm_kernels import TOGETHER
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.micro_kernel import call, turns
from microtir.kernels.common.statements import at, each, let, loop, seq, store, when
from microtir.kernels.common.weights import OCTET, QUAD
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import IN_ONE_CALL, Calls, Refusal
from microtir.tir import ir
from microtir.tir.dtype import DType

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
    count = geometry.segments.count * geometry.segments.length
    return -(-count // WORD) * WORD


def _by_octets(geometry: Geometry) -> bool:
    """Return whether a single pixel is computed by eight channels a turn."""
    return geometry.output.channels >= OCTET


@of_node
def _single_packed_of(node: Node) -> convolution.Packed | None:
    geometry = Geometry.of(node)
    together = OCTET if _by_octets(geometry) else QUAD
    return convolution.packed_of(node, together=together, values=_values(geometry))


class GemmBytes(Kernel):
    """The input as it is, or windows of bytes, times packed weights.

    `pixels`, one or two, are taken at a time; what is left of a row of two is a single one.
    Those that come singly are computed by eight channels a turn where there are so many.
    """

    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    cycles = 120
    depends_on_calls = True

    def __init__(self, name: str, pixels: int) -> None:
        self.name, self.pixels = name, pixels

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it, beside what speaks against patches."""
        reason = convolution.refusal(node)
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
        geometry = Geometry.of(node)
        rows, width = geometry.output.images * geometry.output.height, geometry.output.width
        if not geometry.is_pointwise or (calls.rows and not calls.alone):
            return rows * self._line(geometry, width)
        together = calls.rows or max(rows, 1)
        count, left = divmod(rows, together)
        cost = count * self._line(geometry, together * width)
        return cost + left * self._line(geometry, width)

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

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function."""
        if not _reads_input(Geometry.of(layer.node)):
            return _Patches(
                layer, self.pixels, self.scratch_bytes(layer.node, IN_ONE_CALL)
            ).function(name)
        return _Input(layer, self.pixels).function(name)

    def _is_by_octets(self, geometry: Geometry) -> bool:
        return self.pixels == 1 and _by_octets(geometry)

    def _distance(self, geometry: Geometry) -> int:
        """Return the bytes between the pixels of a block."""
        return geometry.pixel_stride if _reads_input(geometry) else _values(geometry)

    def _line(self, geometry: Geometry, pixels: int) -> int:
        """Return the instructions for pixels of one line: block by block, then one by one."""
        words, quads = _values(geometry) // WORD, -(-geometry.output.channels // QUAD)
        looped = 1 + 3 * turns(words, UNROLL)
        of_word = 30 if _reads_input(geometry) else 28
        block = (of_word * words + looped + 55) * quads + 14
        single = (16 * words + looped + 33) * quads + 45
        if self._is_by_octets(geometry):
            octets = -(-geometry.output.channels // OCTET)
            looped = 1 + 3 * turns(words, UNROLL_OCTETS)
            single = (31 * words + looped + 60) * octets + 45
        if _reads_input(geometry) and self.pixels == 1:
            return pixels * single
        if _reads_input(geometry):
            calls = -(-pixels // geometry.patch_pixels)
            return pixels // TOGETHER * block + pixels % TOGETHER * single + calls * 60
        taps = geometry.windows.rows.taps
        copied = taps * (30 + geometry.windows.columns.taps * geometry.image.channels * 5 // 8)
        blocks, rest = divmod(pixels, self.pixels)
        whole = block + 60 if self.pixels == TOGETHER else single
        return pixels * (copied + 20) + blocks * whole + rest * single


class _Emitter:
    """What both ways have in common."""

    def __init__(self, layer: Layer, pixels: int) -> None:
        self.layer, self.pixels = layer, pixels
        self.geometry = Geometry.of(layer.node)
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        packs = _single_packed_of if pixels == 1 else convolution.packed_of
        packed = packs(layer.node)
        assert packed is not None, "refusal() was asked"
        self.packed = packed

    def product(
        self, pixels: int, distance: int, source: ir.BufferArgument, target: ir.BufferArgument
    ) -> ir.Stmt:
        """Emit all channels of some pixels."""
        channels, values = self.geometry.output.channels, _values(self.geometry)
        rescaling = self.packed.rescaling
        if self.pixels == 1 and _by_octets(self.geometry):
            kernel = gemm_bytes_octets(values, channels, rescaling)
        else:
            kernel = gemm_bytes(pixels, distance, values, channels, rescaling)
        return call(kernel, source, at(self.packed.words, 0, 0, 0), target)


class _Input(_Emitter):
    """Pixels are read where they are."""

    def function(self, name: str) -> ir.PrimFunc:
        layer, width = self.layer, self.geometry.output.width
        if self.geometry.is_pointwise and self.x.is_whole and self.y.is_whole:
            first, pixels = layer.y0 * width, (layer.y1 - layer.y0) * width
            body = self.flat(first, te.maximum(pixels, 0))
        else:
            body = loop("row", layer.y0, layer.y1, self.row)
        return layer.function(name, None, body)

    def some(self, row: te.Expr, column: te.Expr, pixels: int) -> ir.Stmt:
        rows, columns = self.geometry.windows.rows, self.geometry.windows.columns
        source = self.x.at(row * rows.stride, column * columns.stride, 0)
        distance = self.geometry.pixel_stride if pixels > 1 else 0
        return self.product(pixels, distance, source, self.y.at(row, column, 0))

    def row(self, row: te.Expr) -> ir.Stmt:
        """Emit calls for some blocks, one for those left, and the last pixel; or for each pixel."""
        width, most = self.geometry.output.width, self.geometry.patch_pixels
        if self.pixels == 1:
            return each("pixel", width, lambda p: self.some(row, p, 1))
        calls, rest = divmod(width, most)
        left = rest // TOGETHER * TOGETHER
        parts = [loop("part", 0, calls, lambda n: self.some(row, n * most, most))] if calls else []
        if left:
            parts.append(self.some(row, te.as_expr(calls * most, DType.INT32), left))
        if rest % TOGETHER:
            parts.append(self.some(row, te.as_expr(width - 1, DType.INT32), 1))
        return seq(*parts)

    def flat(self, first: te.Expr, pixels: te.Expr) -> ir.Stmt:
        """Emit all pixels of the row range as one line."""
        width, most = self.geometry.output.width, self.geometry.patch_pixels

        def some(pixel: te.Expr, count: int) -> ir.Stmt:
            return self.some(pixel // width, pixel % width, count)

        if self.pixels == 1:
            return loop("pixel", first, first + pixels, lambda p: some(p, 1))

        def parts(calls: te.Expr, blocks: te.Expr) -> ir.Stmt:
            per_call = most // TOGETHER
            return seq(
                loop("part", 0, calls, lambda n: some(first + n * most, most)),
                loop("block", calls * per_call, blocks, lambda n: some(first + n * TOGETHER, 2)),
                loop("pixel", first + blocks * TOGETHER, first + pixels, lambda p: some(p, 1)),
            )

        return let("calls", pixels // most, lambda calls: let(
            "blocks", pixels // TOGETHER, lambda blocks: parts(calls, blocks)
        ))  # fmt: skip


class _Patches(_Emitter):
    """Windows are gathered, tap behind tap: in scratch, or on the stack where that has no bytes.

    Those of two pixels lie word by word in turns: one pointer reads them, however long windows
    are, and layers share a kernel.
    """

    def __init__(self, layer: Layer, pixels: int, scratch_bytes: int) -> None:
        super().__init__(layer, pixels)
        self.values = _values(self.geometry)
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        shape = (1, pixels * self.values)
        self.scratch = (
            ir.Buffer("scratch", shape, DType.INT8, alignment=4) if scratch_bytes else None
        )
        self.patch = self.scratch or ir.Buffer("patch", shape, DType.INT8, ir.Scope.LOCAL)
        self.zero_point = layer.node.inputs[0].type.quant.zero_point

    def function(self, name: str) -> ir.PrimFunc:
        body = seq(self.fill_up(), loop("row", self.layer.y0, self.layer.y1, self.row))
        if self.scratch is None:
            body = ir.Allocate(self.patch, body)
        return self.layer.function(name, self.scratch, body)

    def fill_up(self) -> ir.Stmt:
        """Set what the last word has beyond the window, which meets weights of 0."""
        segments = self.geometry.segments
        count = segments.count * segments.length
        return loop("i", count, self.values, lambda i: store(self.patch, (0, i), 0))

    def row(self, row: te.Expr) -> ir.Stmt:
        blocks, rest = divmod(self.geometry.output.width, self.pixels)

        def some(column: te.Expr, pixels: int) -> ir.Stmt:
            source, target = at(self.patch, 0, 0), self.y.at(row, column, 0)
            gathered = self.gather(row, column, pixels)
            return seq(gathered, self.product(pixels, 0, source, target))

        whole = loop("block", 0, blocks, lambda n: some(n * self.pixels, self.pixels))
        last = te.as_expr(blocks * self.pixels, DType.INT32)
        return seq(whole, some(last, rest)) if rest else whole

    def gather(self, row: te.Expr, column: te.Expr, pixels: int) -> ir.Stmt:
        """Emit the windows of some pixels, kernel row by kernel row."""
        rows, columns = self.geometry.windows.rows, self.geometry.windows.columns
        size = columns.taps * self.geometry.image.channels

        def kernel_row(ky: te.Expr) -> ir.Stmt:
            target = ky * (size * pixels)

            def inside(y: te.Expr) -> ir.Stmt:
                # Pixel by pixel: a loop would hide from whoever follows accesses where a row ends.
                taps = seq(*(
                    self.gather_row(
                        y, (column + n) * columns.stride - columns.before, target + n * WORD, pixels
                    )
                    for n in range(pixels)
                ))  # fmt: skip
                if not rows.clips(self.geometry.output.height):
                    return taps
                outside = call(
                    fill(size * pixels, self.zero_point, DType.INT8), at(self.patch, 0, target)
                )
                return when((y >= 0) & (y < rows.size), taps, outside)

            return let("y", row * rows.stride - rows.before + ky * rows.dilation, inside)

        return loop("ky", 0, rows.taps, kernel_row)

    def gather_row(self, y: te.Expr, left: te.Expr, target: te.Expr, every: int) -> ir.Stmt:
        """Emit one row of a window: at once where it is a run inside the image, else tap by tap.

        Its words are put from `target` on, one into `every` so many.
        """
        columns, channels = self.geometry.windows.columns, self.geometry.image.channels
        clips = columns.clips(self.geometry.output.width)

        def copied(size: int, column: te.Expr, place: te.Expr) -> ir.Stmt:
            moved = copy(size) if every == 1 else spread(size, every)
            return call(moved, self.x.at(y, column, 0), at(self.patch, 0, place))

        def tap(kx: te.Expr) -> ir.Stmt:
            place = target + kx * (channels * every)

            def there(column: te.Expr) -> ir.Stmt:
                one = copied(channels, column, place)
                if not clips:
                    return one
                is_inside = (column >= 0) & (column < columns.size)
                return when(is_inside, one, self.fill_tap(place, every))

            return let("x_col", left + kx * columns.dilation, there)

        if columns.taps > 1 and columns.dilation > 1:
            # As for pixels, no loop: what it reads is not all between its first and last column.
            return seq(*(tap(te.as_expr(kx, DType.INT32)) for kx in range(columns.taps)))
        one_by_one = loop("kx", 0, columns.taps, tap)
        run = copied(columns.taps * channels, left, target)
        if not clips:
            return run
        return when((left >= 0) & (left + (columns.taps - 1) < columns.size), run, one_by_one)

    def fill_tap(self, place: te.Expr, every: int) -> ir.Stmt:
        """Emit values outside the image: the zero point, for which the bias accounts."""
        channels = self.geometry.image.channels
        if every == 1:
            filled = fill(channels, self.zero_point, DType.INT8)
        else:
            filled = fill_spread(channels, every, self.zero_point)
        return call(filled, at(self.patch, 0, place))
