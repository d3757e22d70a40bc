"""Micro-kernels of matrix products: two pixels, or one, by groups of four channels."""

from __future__ import annotations

from collections.abc import Callable

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.linear import BYTES, steps_of
from microtir.kernels.arm_mve.requantise import BIAS, LANES, MULTIPLIER, SHIFT, WORDS, Rescaling
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import Unroll, describe
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir

PIXELS = 2
UNROLL = Unroll(12, 6)


@made_once
def gemm(
    pixels: int, values: int, stride: int, channels: int, rescaling: Rescaling
) -> KernelDescription:
    """Compute `pixels` (2 or 1) by four channels a turn.

    Args:
        pixels: how many.
        values: of a sum.
        stride: bytes between the values of both pixels; those of a pixel follow each other.
        channels: of the output.
        rescaling: of the sums.

    Returns:
        Parameters: the first pixel's values, weights and constants of `PackedLinear`, and the
        outputs of the first pixel.
    """
    groups, steps = -(-channels // LANES), steps_of(values)
    x = ir.Buffer("x", ((pixels - 1) * stride + values,), DType.INT8)
    weights = ir.Buffer("weights", (groups, steps, LANES, BYTES), DType.INT8, alignment=4)
    constants = ir.Buffer("constants", (groups, WORDS, LANES), DType.INT32)
    y = ir.Buffer("y", (pixels * channels,), DType.INT8)

    def output(group: te.Expr, pixel: te.Expr, lane: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)
        sums = _products(values, total, lambda step, first, n: (
            load(x, pixel * stride + first + n), load(weights, group, step, lane, n)
        ))  # fmt: skip
        word = [load(constants, group, number, lane) for number in range(WORDS)]
        result = rescaling.apply(load(total), word[MULTIPLIER], word[SHIFT])
        stored = store(y, (pixel * channels + group * LANES + lane,), result)
        return ir.Allocate(total, seq(store(total, (), word[BIAS]), sums, stored))

    def lanes(group: te.Expr, pixel: te.Expr) -> ir.Stmt:
        count = te.minimum(channels - group * LANES, LANES) if channels % LANES else LANES
        return loop("lane", 0, count, lambda lane: output(group, pixel, lane))

    return describe(
        f"gemm{pixels}_{values}x{channels}" + (f"_{stride}" if pixels > 1 else "")
        + f"_{rescaling.name}",
        (f"Matrix product: {_pixels(pixels)} of {values} values by {channels} channels",),
        (x, weights, constants, y),
        (y,),
        loop(
            "group", 0, groups,
            lambda group: loop("pixel", 0, pixels, lambda pixel: lanes(group, pixel)),
        ),
        f"kernels/mve/gemm{pixels}.j2",
        _values(values, stride, channels, rescaling),
        stack_bytes=48 if pixels == PIXELS else 28,
        needs=Feature.MVE,
    )  # fmt: skip


def _products(
    values: int,
    total: ir.Buffer,
    operands: Callable[[te.ExprLike, te.ExprLike, te.Expr], tuple[te.Expr, te.Expr]],
) -> ir.Stmt:
    """Add all products to `total`: `operands(step, first value of the step, n)`."""

    def step(number: te.ExprLike, first: te.ExprLike, length: int) -> ir.Stmt:
        def product(n: te.Expr) -> ir.Stmt:
            a, b = (te.cast(DType.INT32, operand) for operand in operands(number, first, n))
            return store(total, (), load(total) + a * b)

        return loop("n", 0, length, product)

    whole = values // BYTES
    sums = loop("step", 0, whole, lambda number: step(number, number * BYTES, BYTES))
    if values % BYTES == 0:
        return sums
    return seq(sums, step(whole, max(values - BYTES, 0), min(values, BYTES)))


def _values(values: int, stride: int, channels: int, rescaling: Rescaling) -> dict[str, object]:
    """Return what the templates are given."""
    whole, rest = divmod(values, BYTES)
    before, loops = (_printed_before(whole, UNROLL), _turns(whole, UNROLL)) if whole else (0, 0)
    return {
        "rescaling": rescaling.values(),
        "stride": str(stride),
        "channels": str(channels),
        "values": str(values),
        "repeats": str(before) if before else "",
        "turns": str(loops) if loops else "",
        "repeats_in_turn": str(UNROLL.turn),
        "has_rest": rest > 0,
        "masks": whole == 0,
        "back": str(BYTES - rest),
        "partial": channels % LANES != 0,
    }


def _pixels(count: int) -> str:
    return "1 pixel" if count == 1 else f"{count} pixels"


def instructions(pixels: int, values: int, channels: int) -> int:
    """Return the instructions of one call, from counts of the emulated Cortex-M55."""
    groups, steps = -(-channels // LANES), steps_of(values)
    loops = 2 * _turns(values // BYTES, UNROLL) if values >= BYTES else 4
    if pixels == PIXELS:
        return groups * (14 * steps + loops + 25) + 20
    return groups * (9 * steps + loops + 16) + 12


def code_size(pixels: int, values: int) -> int:
    """Return the bytes of the kernel."""
    whole = values // BYTES
    printed_steps = (_printed(whole, UNROLL) if whole else 0) + (values % BYTES > 0)
    return 150 + 56 * printed_steps if pixels == PIXELS else 110 + 36 * printed_steps


def _printed_before(steps: int, unroll: Unroll) -> int:
    """Return steps in front of the loop; all of them if there is none."""
    return steps if unroll.is_straight(steps) else steps % unroll.turn or unroll.turn


def _printed(steps: int, unroll: Unroll) -> int:
    """Return steps that are printed, in front of the loop and in it."""
    before = _printed_before(steps, unroll)
    return before if before == steps else before + unroll.turn


def _turns(steps: int, unroll: Unroll) -> int:
    """Return how often the loop runs."""
    return (steps - _printed_before(steps, unroll)) // unroll.turn
