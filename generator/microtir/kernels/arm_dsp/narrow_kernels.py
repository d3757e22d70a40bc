"""Micro-kernels of short sums: all pixels of a patch for one channel after another.

Rule: where a pixel has 8 values or less, the weights and constants of a channel stay in registers.
A pixel is one load of several words, as many products as words, and what requantisation needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.arm_dsp.outputs import PlaneRow
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import Sizes, describe
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, WORDS, Rescaling
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.schedule import KernelDescription
from microtir.tir import ir

LONGEST = 8  # values of a pixel
PIXELS = 32  # the most of a patch
CHANNELS = 255  # largest step of a store
TURN = 8  # pixels of a turn
_CONSTANTS = (BIAS, MULTIPLIER, ROUNDING, SHIFT)
_ORDER = (0, 2, 1, 3)  # of four values, as SXTB16 splits them


@made_once
def widen(values: int) -> KernelDescription:
    """Widen whole quads.

    Returns:
        Parameters: values int8; the same as int16, bytes 0 and 2 of each word, then 1 and 3.
    """
    sizes = Sizes()
    quads = sizes.number("quads", values // QUAD, 1, PIXELS * LONGEST // QUAD)
    x = ir.Buffer("x", (quads, QUAD), DType.INT8)
    patch = ir.Buffer("patch", (quads, QUAD), DType.INT16, alignment=4)

    def quad(number: te.Expr) -> ir.Stmt:
        return seq(*(
            store(patch, (number, place), te.cast(DType.INT16, load(x, number, byte)))
            for place, byte in enumerate(_ORDER)
        ))  # fmt: skip

    return describe(
        "widen_quads",
        ("Widens values to 16 bits, four by four",),
        (x, patch),
        (patch,),
        loop("quad", 0, te.as_expr(quads, DType.INT32), quad),
        "kernels/widen.j2",
        {},
        stack_bytes=36,
        sizes=sizes,
    )


@made_once
def narrow(
    pixels: int, values: int, channels: int, rescaling: Rescaling, planes: PlaneRow | None = None
) -> KernelDescription:
    """Compute all channels of some pixels.

    Args:
        pixels: of the patch.
        values: of a pixel, 4 or 8.
        channels: of the output, at most `CHANNELS`.
        rescaling: of the sums.
        planes: where outputs go, if they do not follow each other.

    Returns:
        Parameters: patch (pixels, values) int16 as `widen` makes it, what `pack` gives, outputs
        (pixels, channels); then the number of pixels.  For planes, outputs are a row (channels,
        columns) and the column of the first pixel.
    """
    steps = values // 2
    sizes = Sizes()
    count = sizes.number("pixels", pixels, 1, PIXELS)
    patch = ir.Buffer("patch", (count, values), DType.INT16, alignment=4)
    words = ir.Buffer("words", (channels, steps + WORDS), DType.INT32)
    y, column, place = _outputs(count, channels, planes, sizes)

    def rescaled(total: ir.Buffer, factors: list[te.Expr]) -> te.Expr:
        return te.cast(y.dtype, rescaling.rescale(load(total), *factors))

    def pixel(channel: te.Expr, number: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)
        bias, *factors = (load(words, channel, steps + n) for n in _CONSTANTS)
        return ir.Allocate(total, seq(
            store(total, (), bias),
            loop("step", 0, steps, lambda n: _add_both(total, patch, number, words, channel, n)),
            store(y, place(channel, number), rescaled(total, factors)),
        ))  # fmt: skip

    def channel(c: te.Expr) -> ir.Stmt:
        return loop("pixel", 0, te.as_expr(count, DType.INT32), lambda number: pixel(c, number))

    return describe(
        f"narrow{values}_{channels}_{rescaling.name}{planes.name if planes else ''}",
        (f"Matrix product: {channels} channels, each of {values} values of some pixels",),
        (patch, words, y),
        (y,),
        loop("channel", 0, channels, channel),
        "kernels/narrow.j2",
        _narrow_values(steps, channels, rescaling, planes),
        stack_bytes=60,
        sizes=sizes,
        scalars=() if column is None else (column,),
    )


Place = Callable[[te.Expr, te.Expr], tuple[te.Expr, te.Expr]]
"""Where the output of a channel and a pixel of the patch goes."""


def _outputs(
    pixels: ir.Var, channels: int, planes: PlaneRow | None, sizes: Sizes
) -> tuple[ir.Buffer, ir.Var | None, Place]:
    """Return the outputs of a patch, and for planes the column of its first pixel."""
    if planes is None:
        y = ir.Buffer("y", (pixels, channels), DType.INT8)
        return y, None, lambda channel, pixel: (pixel, channel)
    column = ir.Var("column", low=0, high=planes.columns)
    first = te.as_expr(column, DType.INT32)
    sizes.hold(first + te.as_expr(pixels, DType.INT32) <= planes.columns)
    y = ir.Buffer("y", (channels, planes.columns), planes.dtype)
    return y, column, lambda channel, pixel: (channel, first + pixel)


def _narrow_values(
    steps: int, channels: int, rescaling: Rescaling, planes: PlaneRow | None
) -> dict[str, object]:
    return {
        "rescaling": rescaling.values(),
        "turn": str(TURN),
        "turn_mask": str(TURN - 1),
        "pixel_bytes": str(steps * 2 * DType.INT16.bytes),
        "channels": str(channels),
        "last_value": f"r{3 + steps}",
        "last_weight": f"r{steps - 1}",
        "steps": [{"value": f"r{4 + n}", "weight": f"r{n}"} for n in range(1, steps)],
        "planes": planes.values() if planes else "",
        "store": planes.values()["store"] if planes else "strb",
        "output_step": str(planes.dtype.bytes if planes else channels),
        "channel_step": str(planes.bytes if planes else 1),
    }


def _add_both(
    total: ir.Buffer,
    patch: ir.Buffer,
    pixel: te.Expr,
    words: ir.Buffer,
    channel: te.Expr,
    step: te.Expr,
) -> ir.Stmt:
    """Add the products of a word of a pixel and one of weights."""
    word = load(words, channel, step)
    low, high = (word & 0xFFFF ^ 0x8000) - 0x8000, word >> 16
    first, second = (te.cast(DType.INT32, load(patch, pixel, step * 2 + n)) for n in range(2))
    return store(total, (), load(total) + first * low + second * high)


def pack(weights: npt.NDArray[np.int8], constants: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return weights, doubled so that sums are doubled accumulators, and constants of each channel.

    Args:
        weights: (channels, values), whole quads.
        constants: words of each channel as requantisation makes them, (channels, 4).

    Returns:
        (channels, values / 2 + 4).
    """
    quads = 2 * weights.astype(np.int64).reshape(len(weights), -1, QUAD)[:, :, list(_ORDER)]
    pairs = quads.reshape(len(weights), -1, 2)
    words = pairs[:, :, 1] * (1 << 16) + (pairs[:, :, 0] & 0xFFFF)
    return np.concatenate([words, constants.astype(np.int64)], axis=1).astype(np.int32)
