"""Micro-kernels of matrix products: blocks of 2 pixels, or one pixel, by four channels.

Strides and counts are arguments, so that all layers of a model share a kernel for each way to
requantise.  Sums of few steps may be unrolled entirely: such a kernel is for one number of steps.

A single pixel leaves registers for the weights of two steps, which one instruction loads: seven
instructions a step.  Of an odd number of steps the first is taken alone, by a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import Sizes, Unroll, describe, unrolled
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, WORDS, Rescaling
from microtir.kernels.common.statements import each, let, load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

TOGETHER = 2  # pixels of a block
STEPS = (1 << 13) - 1  # the most that a kernel is given; MOVW loads their bytes
CHANNELS = 1 << 12
PIXELS = 1 << 6
COLUMNS = 1 << 12  # the most of a plane
_STEP_BYTES = 48  # of the instructions of a step for two pixels that loads two words at a time
_PAIR_BYTES = 56  # of two steps for a single one
_APART_BYTES = 8  # more where a step for two pixels loads word by word
CONSTANT_LINES = QUAD * WORDS // 2  # of two words each
_CHANNEL_BIT = 8  # of the word with the shift: ASR by a register reads only the byte below


@dataclass(frozen=True, slots=True)
class PlaneRow:
    """An output row that is planes of so many columns."""

    dtype: DType
    columns: int

    @property
    def bytes(self) -> int:
        """Return the bytes of a plane."""
        return self.columns * self.dtype.bytes

    @property
    def name(self) -> str:
        """Tell kernels for planes of one width from others."""
        return f"_planes{self.dtype.bits}of{self.columns}"

    def values(self) -> dict[str, str]:
        """Return what the templates are given."""
        is_wide = self.dtype is DType.INT16
        return {
            "store": "strh" if is_wide else "strb",
            "scaled": ", lsl #1" if is_wide else "",
            "twice": f", lsl #{self.dtype.bytes}",
            "pixel": str(self.dtype.bytes),
            "pair": str(TOGETHER * self.dtype.bytes),
        }


@made_once
def gemm(
    pixels: int,
    steps: int,
    channels: int,
    rescaling: Rescaling,
    unroll: Unroll,
    planes: PlaneRow | None = None,
) -> KernelDescription:
    """Compute two pixels, or a single one, by four channels a turn.

    Args:
        pixels: of the patch, an even number; or 1, the first one of a patch.
        steps: of two values each.
        channels: of the output, at least 4.
        rescaling: of the sums.
        unroll: of the steps.
        planes: where outputs go, if they do not follow each other.

    Returns:
        Parameters: patch (blocks, steps, pixels of a block, 2) int16, what `pack_quads` gives,
        outputs (blocks, pixels of a block, channels); then steps, lines, quads, channels, and
        blocks if there may be several.  For planes, outputs are a row (channels, columns) and the
        column of the first pixel; the number of columns follows that of channels.
    """
    together = min(pixels, TOGETHER)
    sizes = Sizes()
    count = sizes.number("steps", steps, 1, STEPS)
    lines = sizes.number("lines", steps + CONSTANT_LINES, 1, STEPS + CONSTANT_LINES)
    sizes.hold(number_of(lines) >= number_of(count) + CONSTANT_LINES)
    quads = sizes.number("quads", -(-channels // QUAD), 1, CHANNELS // QUAD)
    width = sizes.number("channels", channels, QUAD, CHANNELS)
    column = ir.Var("column", low=0, high=COLUMNS) if planes else None
    columns = sizes.number("columns", planes.columns, 1, COLUMNS) if planes else width
    blocks = sizes.number("blocks", pixels // 2, 1, PIXELS // 2) if together > 1 else 1
    patch = ir.Buffer("patch", (blocks, count, together, 2), DType.INT16, alignment=4)
    packed = ir.Buffer("packed", (quads, lines, 2), DType.INT32)
    y = ir.Buffer("y", (blocks, together, width), DType.INT8)
    if planes is not None and column is not None:
        y = ir.Buffer("y", (width, columns), planes.dtype)
        sizes.hold(number_of(column) + number_of(blocks) * together <= number_of(columns))
    product = Product(patch, packed, y, rescaling, together, number_of(count), column)
    special = steps if unroll.is_straight(steps) else None
    return describe(
        _name(together, steps, rescaling, planes, unroll),
        (_about(together, special, planes),),
        (patch, packed, y),
        (y,),
        each("block", blocks,
             lambda block: loop("quad", 0, number_of(quads), partial(product.turn, block))),
        f"kernels/gemm{together}.j2",
        {
            **_unrolled(together, steps, unroll),
            "rescaling": rescaling.values(), "planes": planes.values() if planes else "",
        },
        stack_bytes=68 if together > 1 else 48,
        sizes=sizes,
        scalars=() if column is None else (column,),
    )  # fmt: skip


Value = Callable[[te.Expr, int], te.Expr]
"""The value of a pixel of a block that has a number, 0 or 1, in a step."""


class Product:
    """The meaning of a turn: one block of pixels by four channels, or by eight.

    A line of `packed` is what a step multiplies by: two pairs of channels, or four.
    """

    def __init__(
        self,
        patch: ir.Buffer,
        packed: ir.Buffer,
        y: ir.Buffer,
        rescaling: Rescaling,
        together: int,
        steps: te.Expr,
        column: ir.Var | None = None,
    ) -> None:
        self.patch, self.packed, self.y = patch, packed, y
        self.rescaling = rescaling
        self.pixels = together
        self.column = column  # of the first pixel, where outputs are planes
        self.steps = steps
        pairs = packed.shape[2]
        assert isinstance(pairs, int)
        self.pairs, self.channels = pairs, 2 * pairs
        self.last = number_of(y.shape[2 if column is None else 0]) - self.channels
        self.sums = local_sums(together * pairs)

    def turn(self, block: te.Expr, quad: te.Expr) -> ir.Stmt:
        low, high = self.sums

        def outputs(pixel: te.Expr) -> ir.Stmt:
            return seq(
                *(self.output(block, quad, pixel, number) for number in range(self.channels))
            )

        whole = seq(
            cleared(self.pixels * self.pairs, low, high),
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

        return split_lane(lane, products)

    def output(self, block: te.Expr, quad: te.Expr, pixel: te.Expr, number: int) -> ir.Stmt:
        """Store channel `number` of those of a turn."""

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
        stored = te.cast(self.y.dtype, value)
        return let("value", stored, partial(store, self.y, place))


def _unrolled(together: int, steps: int, unroll: Unroll) -> dict[str, str | bool]:
    """Return how sums are unrolled: step by step, or two at a time for a single pixel."""
    if together > 1:
        return unrolled(steps, unroll, _STEP_BYTES + _APART_BYTES * unroll.apart)
    pairs = unrolled(-(-steps // 2), unroll.of_pairs(), _PAIR_BYTES)
    return {**pairs, "odd": steps % 2 == 1}


def _name(
    together: int, steps: int, rescaling: Rescaling, planes: PlaneRow | None, unroll: Unroll
) -> str:
    loop = "_odd" if together == 1 and steps % 2 else ""
    special = f"_{steps}" if unroll.is_straight(steps) else loop
    where = f"_planes{planes.dtype.bits}" if planes else ""
    loads = "_apart" if unroll.apart and together > 1 else ""
    return f"gemm{together}{special}_{rescaling.name}{where}{loads}"


def _about(together: int, steps: int | None, planes: PlaneRow | None) -> str:
    values = "" if steps is None else f" of {2 * steps} values"
    where = ", into planes" if planes else ""
    return f"Matrix product: {pixels_named(together)}{values} by four channels a turn{where}"


def pixels_named(together: int) -> str:
    """Return how comments call so many pixels."""
    return "1 pixel" if together == 1 else f"{together} pixels"


def number_of(extent: ir.Dim) -> te.Expr:
    """Return an extent as an expression."""
    return te.as_expr(extent, DType.INT32)


def pack_quads(
    lanes: npt.NDArray[np.int16],
    constants: npt.NDArray[np.int32],
    order: list[int],
    distance: int = 1,
    together: int = QUAD,
) -> npt.NDArray[np.int32]:
    """Return weights and constants in the order in which the kernels read them.

    Args:
        lanes: dual-packed weights of channel pairs, (2 * quads, steps, 2).
        constants: words of each channel, the shift last, (channels, 4).
        order: the channels of all quads.
        distance: bytes from a channel of an output to the next.
        together: channels of a turn: a quad, or two of them.

    Returns:
        (quads, steps + 8, 2): for each quad the lanes of its pairs step by step, then its
        constants. Where its first channel lies stands in the upper bits of its shifts.  Eight
        channels have lines of four words instead.
    """
    steps, pairs = lanes.shape[1], together // 2
    wide = lanes.astype(np.int64).reshape(-1, pairs, steps, 2)
    words = (wide[..., 1] * (1 << 16) + (wide[..., 0] & 0xFFFF)).transpose(0, 2, 1)
    rows = constants[order].astype(np.int64).reshape(-1, together, WORDS)
    rows[:, :, SHIFT] |= np.array(order[::together])[:, np.newaxis] * distance << _CHANNEL_BIT
    lines = np.concatenate([words, rows.reshape(-1, CONSTANT_LINES, pairs)], axis=1)
    return lines.astype(np.int32)


def cleared(count: int, low: ir.Buffer, high: ir.Buffer) -> ir.Stmt:
    """Set all sums to 0."""
    return loop("i", 0, count, lambda i: seq(store(low, (i,), 0), store(high, (i,), 0)))


def local_sums(count: int) -> tuple[ir.Buffer, ir.Buffer]:
    """Return sums of the low bytes and of the high ones."""
    low = ir.Buffer("low", (count,), DType.INT32, ir.Scope.LOCAL)
    return low, ir.Buffer("high", (count,), DType.INT32, ir.Scope.LOCAL)


def split_lane(lane: te.Expr, body: Callable[[te.Expr, te.Expr], ir.Stmt]) -> ir.Stmt:
    """Emit names the two weights of a dual-packed lane for `body(a, b)`."""
    wide = te.cast(DType.INT32, lane)
    low = (wide + 128) % 256 - 128
    return let("a", low, lambda a: let("b", (wide - a) >> 8, lambda b: body(a, b)))
