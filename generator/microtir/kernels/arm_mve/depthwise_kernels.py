"""Micro-kernel of depthwise convolutions: a row of pixels, sixteen channels at a time.

Products of bytes are 16 bits wide, and so is the sum of two of them; pairs of taps are added
before they are widened.  Bytes with even numbers and those with odd ones are multiplied apart, and
pair their taps one tap apart, so that one pair at a time waits for its second product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from microtir import te
from microtir.config.features import Feature
from microtir.kernels.arm_mve.linear import BYTES
from microtir.kernels.arm_mve.requantise import LANES, Rescaling
from microtir.kernels.common.depthwise_taps import Taps
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

VECTORS = BYTES // LANES
# Vectors of sums: bytes 0, 4, 8, 12, then 2, 6, 10, 14, then 1, 5, 9, 13, then 3, 7, 11, 15.
ORDER = tuple(4 * lane + first for first in (0, 2, 1, 3) for lane in range(LANES))
ROWS = 3 * VECTORS  # biases of all vectors, then multipliers and shifts of one after another
_IMMEDIATE = 127  # largest offset of a load of bytes
LARGEST_ADD = 4095


@dataclass(frozen=True, slots=True)
class Line:
    """`count` groups of bytes that are computed alike: of one pixel, or of some neighbours.

    The bytes of a group are whole vectors, of which the second one may begin before the first one
    ends, or less than one vector.
    """

    count: int
    size: int

    @property
    def blocks(self) -> int:
        return -(-self.size // BYTES)

    @property
    def back(self) -> int:
        """Return bytes that the second vector shares with the first one.

        0 if there is one vector.
        """
        return self.blocks * BYTES - self.size if self.blocks > 1 else 0

    def starts(self) -> list[int]:
        """Return where the vectors of a group begin."""
        return [max(block * BYTES - self.back, 0) for block in range(self.blocks)]


@made_once
def depthwise(line: Line, taps: Taps, rescaling: Rescaling) -> KernelDescription:
    """Compute all channels of a row of pixels.

    Args:
        line: the outputs; several pixels make a group only if neighbours' windows are one column
            apart.
        taps: the window of a pixel.
        rescaling: of the sums.

    Returns:
        Parameters: the first tap of the first pixel, weights (blocks, taps, 16) int8, constants
        (blocks, 12, 4) int32, outputs.  Vectors of constants have the channels in ORDER.
    """
    step = line.size if line.size != taps.channels else taps.stride * taps.channels
    reach = (line.count - 1) * step + line.size + taps.reach(1) - taps.channels
    params = _Params(
        ir.Buffer("x", (reach,), DType.INT8),
        ir.Buffer("weights", (line.blocks, taps.count, BYTES), DType.INT8, alignment=4),
        ir.Buffer("constants", (line.blocks, ROWS, LANES), DType.INT32),
        ir.Buffer("y", (line.count * line.size,), DType.INT8),
    )
    kernel = f"{taps.rows}x{taps.columns}"
    steps = f"{taps.row_step}_{taps.column_step}_{taps.stride}"
    return describe(
        f"depthwise_{line.count}x{line.size}_{kernel}_{taps.channels}_{steps}_{rescaling.name}",
        (f"Depthwise convolution: {line.count} x {line.size} outputs, {kernel} taps",),
        params,
        (params.y,),
        _meaning(params, line, taps, rescaling, step),
        "kernels/mve/depthwise.j2",
        _values(line, taps, rescaling, step),
        stack_bytes=100,
        needs=Feature.MVE,
    )


class _Params(NamedTuple):
    """Of the kernel, in order."""

    x: ir.Buffer
    weights: ir.Buffer
    constants: ir.Buffer
    y: ir.Buffer


def _meaning(params: _Params, line: Line, taps: Taps, rescaling: Rescaling, step: int) -> ir.Stmt:
    """Emit loops that a kernel stands for; `step` is the distance between groups of the input."""
    x, weights, constants, y = params

    def output(group: te.Expr, block: te.Expr, lane: te.Expr, byte: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def tap(row: te.Expr, column: te.Expr) -> ir.Stmt:
            offset = row * taps.row_step + column * (taps.column_step * taps.channels)
            value = load(x, group * step + byte + offset)
            weight = load(weights, block, row * taps.columns + column, lane)
            product = te.cast(DType.INT32, value) * te.cast(DType.INT32, weight)
            return store(total, (), load(total) + product)

        sums = loop(
            "row", 0, taps.rows,
            lambda row: loop("col", 0, taps.columns, lambda column: tap(row, column)),
        )  # fmt: skip
        vector = lane % 2 * 2 + lane % 4 // 2

        def word(row: te.Expr) -> te.Expr:
            return load(constants, block, row, lane // 4)

        factors = word(vector * 2 + VECTORS), word(vector * 2 + (VECTORS + 1))
        result = store(y, (group * line.size + byte,), rescaling.apply(load(total), *factors))
        return ir.Allocate(total, seq(store(total, (), word(vector)), sums, result))

    def lanes(group: te.Expr, block: te.Expr) -> ir.Stmt:
        first = te.maximum(block * BYTES - line.back, 0)
        return loop(
            "lane", 0, min(line.size, BYTES),
            lambda lane: output(group, block, lane, first + lane),
        )  # fmt: skip

    return loop(
        "group", 0, line.count,
        lambda group: loop("block", 0, line.blocks, lambda block: lanes(group, block)),
    )  # fmt: skip


def _values(line: Line, taps: Taps, rescaling: Rescaling, step: int) -> dict[str, object]:
    """Return what the template is given."""
    masked = line.size < BYTES
    jump = step - (0 if masked else line.size)
    return {
        "rescaling": rescaling.values(),
        "count": str(line.count) if line.count > 1 else "",
        "blocks": str(line.blocks) if line.blocks > 1 else "",
        "first_step": str(BYTES - line.back) if line.back else "",
        "mask": str(line.size) if masked else "",
        "jump": str(jump) if jump else "",
        "row_step": str(taps.row_step) if taps.rows > 1 else "",
        "centre": str(_centre(taps)) if _centre(taps) else "",
        "taps": [_tap(taps, row, column) for row in range(taps.rows)
                 for column in range(taps.columns)],
        "waits_for_odd": taps.count % 2 == 0,
    }  # fmt: skip


def _last_column(taps: Taps) -> int:
    return (taps.columns - 1) * taps.column_step * taps.channels


def _centre(taps: Taps) -> int:
    """Return where the pointers of a row of taps are, so that offsets fit their instruction."""
    return min(max(_last_column(taps) - _IMMEDIATE, 0), _IMMEDIATE)


def _tap(taps: Taps, row: int, column: int) -> dict[str, object]:
    """Return how the inputs of a tap are reached, and which products wait before and after it."""
    number = row * taps.columns + column
    offset = column * taps.column_step * taps.channels - _centre(taps)
    base = "r12" if row else "r0"
    far = offset > _IMMEDIATE
    return {
        "next_row": ("r12" if row > 1 else "r0") if row and column == 0 else "",
        "base": "r11" if far else base,
        "far": base if far else "",
        "offset": str(offset) if offset else "",
        "is_first": number == 0,
        "closes_even": number % 2 == 1,
    }


def fits(taps: Taps) -> bool:
    """Return whether every tap is in reach of the instructions."""
    return _last_column(taps) <= LARGEST_ADD


def instructions(line: Line, taps: Taps, corrects_ties: bool) -> int:
    """Return the instructions of one call, from counts of the emulated Cortex-M55."""
    masks = taps.count + 2 if line.size < BYTES else 0
    products = taps.count * 9 + taps.rows + masks
    if _last_column(taps) > 2 * _IMMEDIATE:
        products += taps.count
    block = products + 36 + 12 * corrects_ties + 2 * (line.back > 0)
    return line.count * (line.blocks * block + 7) + 26


def code_size(taps: Taps) -> int:
    """Return the bytes of the kernel."""
    return 260 + 40 * taps.count
