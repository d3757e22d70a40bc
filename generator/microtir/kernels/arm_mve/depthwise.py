"""Depthwise convolutions: a row of pixels a call, sixteen channels at a time, or eight of int16.

Products of int16 are 32 bits wide, and added at once.  Products of bytes are 16 bits wide, and so
is the sum of two of them; pairs of taps are added before they are widened.  Bytes with even numbers
and those with odd ones are multiplied apart, and pair their taps one tap apart, so that one pair at
a time waits for its second product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.plane_windows import outputs_of, turned
from microtir.kernels.arm_mve import copying, float_rescaling, requantise
from microtir.kernels.arm_mve.linear import BYTES, factors_of, lanes_of, shared
from microtir.kernels.common import micro_kernel, packing
from microtir.kernels.common.bordered_rows import window_rows
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.depthwise import DepthwiseKernel, Taps
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Nhwc, Product, Tile, macro_kernel
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.statements import at, load, loop, seq, store
from microtir.kernels.common.weights import matrix_of
from microtir.measure.printed import Printed, printed
from microtir.operators.common.rows import RowWindow
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TAPS, _ADDED = 64, 49  # they are all printed, or twice; more make too much code
_LARGEST = 0xFFFF  # what MOVW loads
_TOGETHER = (1, 2, 4)  # pixels that may share vectors
_MOST_OUTPUTS = 17  # of a channel; places of those of a vector of bytes are bytes
_COUNTED = (1, 2, 4, 8)  # outputs of a channel whose places are counted by one instruction
_LEAST = np.iinfo(np.int8).min
# Vectors of sums: bytes 0, 4, 8, 12, then 2, 6, 10, 14, then 1, 5, 9, 13, then 3, 7, 11, 15; of
# int16 those with even numbers, then those with odd ones.
_FIRSTS = {4: (0, 2, 1, 3), 2: (0, 1)}
_IMMEDIATE = 127  # largest offset of a load, in elements
_LARGEST_ADD = 4095
_AROUND = 10  # instructions around a call


@dataclass(frozen=True, slots=True)
class Line:
    """`count` groups of elements that are computed alike: of one pixel, or of some neighbours.

    The elements of a group are whole vectors of `lanes`, of which the second one may begin before
    the first one ends, or less than one vector.  A channel has `words` constants.  Outputs of one
    element lie `every` elements behind those of the one before.
    """

    count: int
    size: int
    lanes: int = BYTES
    words: int = requantise.WORDS
    every: int = 1
    less: int = 0  # taken from each stored weight

    @property
    def blocks(self) -> int:
        return -(-self.size // self.lanes)

    @property
    def vectors(self) -> int:
        """Return the vectors of sums of a block."""
        return self.lanes // requantise.LANES

    @property
    def rows(self) -> int:
        """Return the vectors of constants.

        Biases of all vectors of sums, then the other words of one after another.
        """
        return self.words * self.vectors

    @property
    def order(self) -> list[int]:
        """Return the elements of a block as sums have them, vector by vector."""
        firsts = _FIRSTS[self.vectors]
        return [self.vectors * lane + first for first in firsts for lane in range(requantise.LANES)]

    @property
    def back(self) -> int:
        """Return elements that the second vector shares with the first one.

        0 if there is one vector.
        """
        return self.blocks * self.lanes - self.size if self.blocks > 1 else 0

    def starts(self) -> list[int]:
        """Return where the vectors of a group begin."""
        return [max(block * self.lanes - self.back, 0) for block in range(self.blocks)]


def _factors(node: Node, *, wide: bool) -> tuple[requantise.Ints | None, requantise.Form]:
    """Return constants of the channels, None if they or the weights do not fit, and their use."""
    constants, rescaling = factors_of(node, wide=wide)
    meant = matrix_of(node).T
    if shared(meant) is None:
        return None, rescaling
    assert not rescaling.bits, "products of so few taps leave room for the lower part of a bias"
    # The only sum of two products that 16 bits do not hold is 2 * -128 * -128.
    matrix = (meant + _less(node)).astype(np.int8)
    has_largest = ((matrix[:-1] == _LEAST) & (matrix[1:] == _LEAST)).any()
    if rescaling.element is DType.INT8 and has_largest:
        return None, rescaling
    return constants, rescaling


def _less(node: Node) -> int:
    """Return what is taken from each stored weight: 0 where they are int8."""
    return -(shared(node.inputs[1].values) or 0)


_narrow, _wide = (of_node(partial(_factors, wide=wide)) for wide in (False, True))


def _pixels_at_once(geometry: Geometry, lanes: int) -> int:
    """Return how many pixels share vectors: neighbours' windows must be one column apart."""
    channels, width = geometry.image.channels, geometry.output.width
    if geometry.windows.columns.stride > 1 or channels % lanes == 0:
        return 1
    choices = [n for n in _TOGETHER if n <= width]
    return min(choices, key=lambda n: (Line(1, n * channels, lanes).blocks / n, n))


class Depthwise(DepthwiseKernel, float_rescaling.FloatRescaling):
    """A vector of channels at a time, a row a call.

    Args:
        name: of the kernel.
        dtype: of inputs and outputs.
        wide: whether sums have 64 bits: that of products fits 32, and the rest of the bias is a
            constant of the rescaling.
        turns: whether it takes images of a single column, whose rows are the columns of one row.
    """

    needs = Feature.MVE
    cycles = 157
    depends_on_calls = takes_multiplier = has_wide_weights = True

    def __init__(self, name: str, dtype: DType, *, wide: bool = False, turns: bool = False) -> None:
        self.name, self.dtype, self.has_wide_sums, self._turns = name, dtype, wide, turns
        self.rescales_in_float = dtype is DType.INT8

    def _of(self, node: Node) -> Node:
        return turned(node) if self._turns else node

    def reject_sizes(self, node: Node, geometry: Geometry) -> Refusal | None:
        """Return what speaks against it: taps or rows out of reach of the instructions."""
        if self._turns and not geometry.image.width == geometry.output.width == 1:
            return Refusal.WINDOWS
        if outputs_of(node) > _MOST_OUTPUTS:
            return Refusal.MULTIPLIER
        geometry = Geometry.of(self._of(node))
        taps, channels = _copied_taps(geometry), geometry.image.channels
        largest = _LARGEST // self.dtype.bytes
        in_reach = (
            taps.count <= (_ADDED if geometry.has_wide_weights else _TAPS)
            and _last_column(taps) <= _LARGEST_ADD // self.dtype.bytes
            and taps.row_step <= largest
            and taps.stride * channels <= largest
            and geometry.output.width * channels <= largest
            and 0 < geometry.copied * channels <= largest
        )
        return None if in_reach else Refusal.SIZES

    def has_form(self, node: Node) -> bool:
        return self._factors(node)[0] is not None

    def window(self, node: Node) -> RowWindow | None:
        """Return the rows behind an output row; None where all of them are one row."""
        return None if self._turns else super().window(node)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of one window of rows with their borders."""
        return Geometry.of(self._of(node)).window_elements * self.dtype.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M55.

        Calls for few rows copy windows.
        """
        by_rows, geometry = calls.rows > 0, Geometry.of(self._of(node))
        channels, lanes = geometry.image.channels, lanes_of(self.dtype)
        line = self._line(node)
        loops = {"le lr, 2b": line.count * line.blocks, "bne.w 1b": line.count}
        body = _printed(line, _copied_taps(geometry), self._factors(node)[1])
        row = outputs_of(node) * (body.instructions(loops) + _AROUND)
        taps = geometry.windows.rows.taps
        if geometry.is_bordered or (by_rows and taps > 1):
            row += taps * (geometry.copied * channels // lanes * 3 + 20)
            border = (geometry.padded - geometry.copied) * channels if by_rows else 0
            row += taps * border // 4
        return geometry.output.height * row

    def _line(self, node: Node) -> Line:
        """Return all outputs of a row, the last of which may be computed twice."""
        geometry, lanes = Geometry.of(self._of(node)), lanes_of(self.dtype)
        pixels, width = _pixels_at_once(geometry, lanes), geometry.output.width
        size, every = pixels * geometry.image.channels, outputs_of(node)
        return Line(-(-width // pixels), size, lanes, every=every, less=_less(node))

    def code_bytes(self, node: Node) -> int:
        geometry, line = Geometry.of(self._of(node)), self._line(node)
        kernels = 1 + (geometry.output.width % _pixels_at_once(geometry, line.lanes) > 0)
        return kernels * _printed(line, _copied_taps(geometry), self._factors(node)[1]).bytes

    def packed_bytes(self, node: Node) -> int:
        geometry, lanes = Geometry.of(self._of(node)), lanes_of(self.dtype)
        rescaling = self._factors(node)[1]
        pixels, taps = _pixels_at_once(geometry, lanes), _copied_taps(geometry).count
        group = Line(1, pixels * geometry.image.channels, lanes, rescaling.words)
        constants = group.rows * requantise.LANES * DType.INT32.bytes
        return outputs_of(node) * group.blocks * (taps * lanes + constants)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: a window of rows in scratch, then a row of pixels."""
        node = self._of(layer.node)
        geometry, rows = Geometry.of(node), None
        if self._turns:
            (x_shape, y_shape), rows = (t.shape[1:] for t in (node.inputs[0], node.output)), (0, 1)
            x, y = layer.input_matrix(0, x_shape), layer.output_matrix(y_shape)
        else:
            x, y = layer.input_rows(0), layer.output_rows()
        (constants, rescaling), lanes = self._factors(node), lanes_of(self.dtype)
        assert constants is not None, "reject() was asked"
        channels, pixels = geometry.image.channels, _pixels_at_once(geometry, lanes)
        every = outputs_of(node)
        group = Line(1, pixels * channels, lanes, rescaling.words, every, _less(node))
        stored = (node.inputs[1].values + group.less).astype(np.int8)
        reaches_input = geometry.direct_step <= _LARGEST // self.dtype.bytes
        move = partial(copying.copy, dtype=self.dtype)
        source = window_rows(x, geometry, move, reaches_input=reaches_input)
        taps = Taps.of(geometry.windows, channels, source.row_step)

        def kernel(count: int) -> KernelDescription:
            return depthwise(replace(group, count=count // pixels), taps, rescaling)

        def product(number: int) -> Product:
            weights = _arranged_weights(stored[..., number::every], group)
            words = _arranged_constants(constants[number::every], group)
            packed = packing.constant("weights", weights), packing.constant("constants", words)
            return Product(kernel, tuple(at(part, 0, 0, 0) for part in packed), number)

        width = geometry.output.width
        counts = Count(width - width % pixels, "line"), Count(pixels, "group", overlaps=True)
        tile = Tile(counts, tuple(map(product, range(every))))
        return macro_kernel(layer, name, width, source, tile, Nhwc(y), rows)

    def _factors(self, node: Node) -> tuple[requantise.Ints | None, requantise.Form]:
        return (_wide if self.has_wide_sums else _narrow)(node)


def _copied_taps(geometry: Geometry) -> Taps:
    return Taps.of(geometry.windows, geometry.image.channels, geometry.copied_step)


def _channels_of(group: Line, channels: int) -> list[list[int]]:
    """Return the channel of every element, block by block; -1 behind the last one."""
    return [
        [(start + n) % channels if start + n < group.size else -1 for n in range(group.lanes)]
        for start in group.starts()
    ]


def _arranged_weights(weights: npt.NDArray[np.int8], group: Line) -> npt.NDArray[np.int8]:
    """Return weights (1, KH, KW, C) as (blocks, taps, lanes), zeros behind the last channel."""
    taps = weights.reshape(-1, weights.shape[-1])
    padded = np.pad(taps, ((0, 0), (0, 1)))
    order = np.array(_channels_of(group, weights.shape[-1]))
    arranged: npt.NDArray[np.int8] = padded[:, order].transpose(1, 0, 2)
    return arranged


def _arranged_constants(constants: requantise.Ints, group: Line) -> npt.NDArray[np.int32]:
    """Return constants (channels, words) as (blocks, rows, 4), see `depthwise`."""
    padded, count = np.pad(constants, ((0, 1), (0, 0))), group.vectors
    order = np.array(_channels_of(group, len(constants)))[:, group.order]
    vectors = padded[order].reshape(len(order), count, requantise.LANES, -1)
    rows = [vectors[:, v, :, requantise.BIAS] for v in range(count)]
    rows += [vectors[:, v, :, word] for v in range(count) for word in range(1, group.words)]
    arranged: npt.NDArray[np.int32] = np.stack(rows, axis=1).astype(np.int32)
    return arranged


# --- the micro-kernel ---


@made_once
def depthwise(line: Line, taps: Taps, rescaling: requantise.Form) -> KernelDescription:
    """Compute all channels of a row of pixels.

    Args:
        line: the outputs; several pixels make a group only if neighbours' windows are one column
            apart.
        taps: the window of a pixel.
        rescaling: of the sums.

    Returns:
        Parameters: the first tap of the first pixel, weights (blocks, taps, lanes) int8, constants
        (blocks, rows, 4) int32, outputs.  Constants have the channels in the order of the line.
    """
    step = _step(line, taps)
    reach = (line.count - 1) * step + line.size + taps.reach(1) - taps.channels
    params = _Params(
        ir.Buffer("x", (reach,), rescaling.element),
        ir.Buffer("weights", (line.blocks, taps.count, line.lanes), DType.INT8, alignment=4),
        ir.Buffer("constants", (line.blocks, line.rows, requantise.LANES), DType.INT32),
        ir.Buffer("y", ((line.count * line.size - 1) * line.every + 1,), rescaling.element),
    )
    kernel = f"{taps.rows}x{taps.columns}"
    steps = f"{taps.row_step}_{taps.column_step}_{taps.stride}"
    return micro_kernel.describe(
        f"depthwise_{line.count}x{line.size}_{kernel}_{taps.channels}_{steps}_{rescaling.name}"
        + (f"_every_{line.every}" if line.every > 1 else "")
        + (f"_less_{line.less}".replace("-", "m") if line.less else ""),
        (f"Depthwise convolution: {line.count} x {line.size} outputs, {kernel} taps",),
        params,
        (params.y,),
        _meaning(params, line, taps, rescaling, step),
        _template(rescaling),
        _values(line, taps, rescaling, step),
        stack_bytes=100,
        needs=Feature.MVE,
    )


class _Params(NamedTuple):
    """The parameters of the kernel, in order."""

    x: ir.Buffer
    weights: ir.Buffer
    constants: ir.Buffer
    y: ir.Buffer


def _meaning(
    params: _Params, line: Line, taps: Taps, rescaling: requantise.Form, step: int
) -> ir.Stmt:
    """Emit loops that a kernel stands for; `step` is the distance between groups of the input."""
    x, weights, constants, y = params

    def output(group: te.Expr, block: te.Expr, lane: te.Expr, byte: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def tap(row: te.Expr, column: te.Expr) -> ir.Stmt:
            offset = row * taps.row_step + column * (taps.column_step * taps.channels)
            value = load(x, group * step + byte + offset)
            weight = load(weights, block, row * taps.columns + column, lane)
            meant = te.cast(DType.INT32, weight)
            product = te.cast(DType.INT32, value) * (meant - line.less if line.less else meant)
            return store(total, (), load(total) + product)

        count = line.vectors
        vector = lane % 2 * 2 + lane % 4 // 2 if count > 2 else lane % 2

        def word(row: te.Expr) -> te.Expr:
            return load(constants, block, row, lane // count)

        last_word = rescaling.words - 1
        factors = [word(vector * last_word + (count + n)) for n in range(last_word)]
        place = (group * line.size + byte) * line.every
        result = store(y, (place,), rescaling.apply(load(total), factors))
        return ir.Allocate(total, seq(store(total, (), word(vector)), taps.each(tap), result))

    def lanes(group: te.Expr, block: te.Expr) -> ir.Stmt:
        first = te.maximum(block * line.lanes - line.back, 0)
        return loop(
            "lane", 0, min(line.size, line.lanes),
            lambda lane: output(group, block, lane, first + lane),
        )  # fmt: skip

    return loop(
        "group", 0, line.count,
        lambda group: loop("block", 0, line.blocks, lambda block: lanes(group, block)),
    )  # fmt: skip


def _values(line: Line, taps: Taps, rescaling: requantise.Form, step: int) -> dict[str, object]:
    """Return what the template is given."""
    size, masked = rescaling.element.bytes, line.size < line.lanes
    jump = (step - (0 if masked else line.size)) * size
    return {
        "rescaling": rescaling.values(),
        "is_wide": rescaling.is_wide,
        "count": str(line.count) if line.count > 1 else "",
        "blocks": str(line.blocks) if line.blocks > 1 else "",
        "first_step": str((line.lanes - line.back) * size) if line.back else "",
        "mask": str(line.size) if masked else "",
        "masked_bytes": str(line.size * size * line.every),
        "every": str(line.every) if line.every > 1 else "",
        "every_step": str(line.every if line.every in _COUNTED else 1),
        "is_counted": line.every in _COUNTED,
        "block_bytes": str(line.lanes * size * line.every),
        "jump": str(jump) if jump else "",
        "row_step": str(taps.row_step * size) if taps.rows > 1 else "",
        "centre": str(_centre(taps) * size) if _centre(taps) else "",
        "taps": [_tap(taps, row, column, size) for row in range(taps.rows)
                 for column in range(taps.columns)],
        "waits_for_odd": taps.count % 2 == 0,
        "number": str(-line.less & 0xFFFF) if line.less else "",
    }  # fmt: skip


def _last_column(taps: Taps) -> int:
    return (taps.columns - 1) * taps.column_step * taps.channels


def _centre(taps: Taps) -> int:
    """Return where the pointers of a row of taps are, so that offsets fit their instruction."""
    return min(max(_last_column(taps) - _IMMEDIATE, 0), _IMMEDIATE)


def _tap(taps: Taps, row: int, column: int, size: int) -> dict[str, object]:
    """Return how the inputs of a tap are reached, and which products wait before and after it."""
    number = row * taps.columns + column
    offset = column * taps.column_step * taps.channels - _centre(taps)
    base = "r12" if row else "r0"
    far = offset > _IMMEDIATE
    return {
        "next_row": ("r12" if row > 1 else "r0") if row and column == 0 else "",
        "base": "r11" if far else base,
        "far": base if far else "",
        "offset": str(offset * size) if offset else "",
        "is_first": number == 0,
        "closes_even": number % 2 == 1,
    }


def _step(line: Line, taps: Taps) -> int:
    """Return the elements between groups of the input."""
    return line.size if line.size != taps.channels else taps.stride * taps.channels


def _printed(line: Line, taps: Taps, rescaling: requantise.Form) -> Printed:
    return printed(_template(rescaling), _values(line, taps, rescaling, _step(line, taps)))


def _template(rescaling: requantise.Form) -> str:
    return f"kernels/mve/depthwise{'_s16' if rescaling.element is DType.INT16 else ''}.j2"
