"""Micro-kernels of matrix products: a patch of 4 pixels, or of one, times pairs of channels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from microtir import te
from microtir.lowering.dsp.code import let, load, loop, seq, store
from microtir.lowering.dsp.micro_kernel import Unroll, describe, unrolled
from microtir.lowering.dsp.requantise import WORDS, Rescaling
from microtir.lowering.made_once import made_once
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

PIXELS = 4  # lanes of a patch
LANES = 2 * PIXELS  # int16 values of one step: two for each pixel
STEP_BYTES = 2 * LANES


@made_once
def gemm(
    pixels: int, steps: int, channels: int, rescaling: Rescaling, unroll: Unroll
) -> KernelDescription:
    """`pixels` (4 or 1) by two channels a turn.

    Args:
        pixels: how many lanes of the patch are pixels.
        steps: of two values each.
        channels: of the output, at least 2.
        rescaling: of the sums.
        unroll: of the steps.

    Returns:
        Parameters: patch (steps, 4, 2) int16, weights (pairs, steps, 2) dual-packed int16,
        constants (2 * pairs, 4) int32, and the outputs of the first pixel.  Pairs are those of
        `channel_pairs`.
    """
    pairs = -(-channels // 2)
    patch = ir.Buffer("patch", (steps, PIXELS, 2), DType.INT16, alignment=4)
    weights = ir.Buffer("weights", (pairs, steps, 2), DType.INT16, alignment=4)
    constants = ir.Buffer("constants", (2 * pairs, WORDS), DType.INT32)
    y = ir.Buffer("y", (pixels * channels,), DType.INT8)
    low, high = local_sums(pixels)

    def multiply(pair: te.Expr, step: te.Expr, number: int) -> ir.Stmt:
        lanes = partial(_accumulated, patch, (low, high), step, number, pixels)
        return split_lane(load(weights, pair, step, number), lanes)

    def outputs(pair: te.Expr) -> ir.Stmt:
        def output(sums: ir.Buffer, p: te.Expr, number: int) -> ir.Stmt:
            value = rescaling.apply(load(sums, p) * 2, constants, pair * 2 + number)
            first = te.minimum(pair * 2, channels - 2)
            return store(y, (p * channels + first + number,), value)

        return loop("pixel", 0, pixels, lambda p: seq(output(low, p, 0), output(high, p, 1)))

    def turn(pair: te.Expr) -> ir.Stmt:
        zero = cleared(pixels, low, high)
        sums = loop(
            "step", 0, steps, lambda step: seq(multiply(pair, step, 0), multiply(pair, step, 1))
        )
        return ir.Allocate(low, ir.Allocate(high, seq(zero, sums, outputs(pair))))

    return describe(
        f"gemm{pixels}_{steps}x{channels}_{rescaling.name}",
        (f"Matrix product: {_pixels(pixels)} of {2 * steps} values by {channels} channels",),
        (patch, weights, constants, y),
        (y,),
        loop("pair", 0, pairs, turn),
        f"kernels/gemm{pixels}.j2",
        _values(pixels, steps, channels, rescaling, unroll),
        stack_bytes=60 if pixels == PIXELS else 44,
    )  # fmt: skip


def _accumulated(
    patch: ir.Buffer,
    sums: tuple[ir.Buffer, ir.Buffer],
    step: te.Expr,
    number: int,
    pixels: int,
    a: te.Expr,
    b: te.Expr,
) -> ir.Stmt:
    """Adds value `number` of a step, times the weights of both channels, to each pixel's sums."""
    low, high = sums
    return loop(
        "pixel", 0, pixels,
        lambda p: let(
            "value", te.cast(DType.INT32, load(patch, step, p, number)),
            lambda x: seq(
                store(low, (p,), load(low, p) + x * a),
                store(high, (p,), load(high, p) + x * b),
            ),
        ),
    )  # fmt: skip


def cleared(count: int, low: ir.Buffer, high: ir.Buffer) -> ir.Stmt:
    """Sets all sums to 0."""
    return loop("i", 0, count, lambda i: seq(store(low, (i,), 0), store(high, (i,), 0)))


def local_sums(count: int) -> tuple[ir.Buffer, ir.Buffer]:
    """Sums of the low bytes and of the high ones."""
    low = ir.Buffer("low", (count,), DType.INT32, ir.Scope.LOCAL)
    return low, ir.Buffer("high", (count,), DType.INT32, ir.Scope.LOCAL)


def _values(
    pixels: int, steps: int, channels: int, rescaling: Rescaling, unroll: Unroll
) -> dict[str, object]:
    """What the templates are given."""
    return {
        **unrolled(steps, unroll),
        "rescaling": rescaling.values(),
        "output_bytes": str(channels),
        "overlaps": channels % 2 == 1,
        "overlap_note": "; the last ones overlap those before" if channels % 2 else "",
        "patch_bytes": str(steps * STEP_BYTES),
        **{f"pixel{p}": str(p * channels) for p in range(1, pixels)},
        **{f"pixel{p}_high": str(p * channels + 1) for p in range(1, pixels)},
    }


def _pixels(count: int) -> str:
    return "1 pixel" if count == 1 else f"{count} pixels"


def split_lane(lane: te.Expr, body: Callable[[te.Expr, te.Expr], ir.Stmt]) -> ir.Stmt:
    """Names the two weights of a dual-packed lane for `body(a, b)`."""
    wide = te.cast(DType.INT32, lane)
    low = (wide + 128) % 256 - 128
    return let("a", low, lambda a: let("b", (wide - a) >> 8, lambda b: body(a, b)))
