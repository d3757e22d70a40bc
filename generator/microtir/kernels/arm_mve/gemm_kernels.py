"""Micro-kernels of matrix products: two pixels, or one, by groups of four channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.arm_mve.linear import lanes_of, steps_of
from microtir.kernels.arm_mve.requantise import BIAS, LANES, MULTIPLIER, Form
from microtir.kernels.common.float_edges import halves
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import Unroll, describe, reading
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.measure.printed import Printed, printed
from microtir.schedule import KernelDescription
from microtir.tir import ir

PIXELS = 2
UNROLL = Unroll(12, 6)
# Turns between which wide sums are cut.  With what is printed around the loop they are 31 steps at
# most, each of less than 2^25 or that: less than 2^31 beside a lower part of 30 bits.
_TURNS_OF_PART = 4


@made_once
def gemm(
    pixels: int, values: int, stride: int, channels: int, rescaling: Form, distance: int = 0,
    less: int = 0,
) -> KernelDescription:  # fmt: skip
    """Compute `pixels` (2 or 1) by four channels per iteration.

    Args:
        pixels: how many.
        values: of a sum.
        stride: elements between the values of both pixels; those of a pixel follow each other.
        channels: of the output.
        rescaling: of the sums.
        distance: elements from the outputs of a pixel to those of the next; 0: channels.
        less: what is taken from each stored weight.

    Returns:
        Parameters: the first pixel's values, weights and constants of `PackedLinear`, and the
        outputs of the first pixel.
    """
    element, held = rescaling.element, lanes_of(rescaling.element)
    groups, steps = -(-channels // LANES), steps_of(values, held)
    x = ir.Buffer("x", ((pixels - 1) * stride + values,), element)
    weights = ir.Buffer("weights", (groups, steps, LANES, held), DType.INT8, alignment=4)
    constants = ir.Buffer("constants", (groups, rescaling.words, LANES), DType.INT32)
    distance = distance or channels
    every = f"_every_{distance}" if pixels > 1 and distance > channels else ""
    y = ir.Buffer("y", ((pixels - 1) * distance + channels,), rescaling.stored)

    def output(group: te.Expr, pixel: te.Expr, lane: te.Expr) -> ir.Stmt:
        dtype = DType.INT64 if rescaling.bits else DType.INT32
        total = ir.Buffer("total", (), dtype, ir.Scope.LOCAL)
        sums = _products(values, held, total, lambda step, first, n: (
            load(x, pixel * stride + first + n), load(weights, group, step, lane, n)
        ), less)  # fmt: skip
        word = [load(constants, group, number, lane) for number in range(rescaling.words)]
        result = rescaling.apply(load(total), word[MULTIPLIER:])
        place = pixel * distance + group * LANES + lane
        if rescaling.adds:
            result = _added(load(y, place), result)
        stored = store(y, (place,), result)
        return ir.Allocate(total, seq(store(total, (), te.cast(dtype, word[BIAS])), sums, stored))

    def lanes(group: te.Expr, pixel: te.Expr) -> ir.Stmt:
        count = te.minimum(channels - group * LANES, LANES) if channels % LANES else LANES
        return loop("lane", 0, count, lambda lane: output(group, pixel, lane))

    described = describe(
        f"gemm{pixels}_{values}x{channels}" + (f"_{stride}" if pixels > 1 else "")
        + f"_{rescaling.name}{every}" + (f"_less_{less}".replace("-", "m") if less else ""),
        (f"Matrix product: {_pixels(pixels)} of {values} values by {channels} channels",),
        (x, weights, constants, y), (y,),
        loop("group", 0, groups, lambda group: loop(
            "pixel", 0, pixels, lambda pixel: lanes(group, pixel)
        )),
        f"kernels/mve/gemm{pixels}.j2",
        template_values(values, stride, channels, rescaling, distance, less),
        stack_bytes=stack_bytes(pixels, values, rescaling, less),
        needs=Feature.MVE,
    )  # fmt: skip
    return reading(described, y) if rescaling.adds else described


def stack_bytes(pixels: int, values: int, rescaling: Form, less: int) -> int:
    """Return the stack that the template of so many pixels takes."""
    is_vector = steps_of(values, lanes_of(rescaling.element)) == 1
    of_pair = 68 if is_vector else 84 if rescaling.bits else 48
    return (of_pair if pixels == PIXELS else 28) + 8 * bool(less)


def _added(before: te.Expr, more: te.Expr) -> te.Expr:
    """Return the saturating sum of two values of a type."""
    total = te.cast(DType.INT32, before) + te.cast(DType.INT32, more)
    return te.cast(more.dtype, te.clamp(total, more.dtype.min, more.dtype.max))


def _products(
    values: int,
    lanes: int,
    total: ir.Buffer,
    operands: Callable[[te.ExprLike, te.ExprLike, te.Expr], tuple[te.Expr, te.Expr]],
    less: int,
) -> ir.Stmt:
    """Add all products to `total`: of `operands(step, first value of the step, n)`."""

    def step(number: te.ExprLike, first: te.ExprLike, length: int, begin: int = 0) -> ir.Stmt:
        def product(n: te.Expr) -> ir.Stmt:
            a, b = (te.cast(total.dtype, operand) for operand in operands(number, first, n))
            return store(total, (), load(total) + a * (b - less if less else b))

        return loop("n", begin, length, product)

    whole, rest = divmod(values, lanes)
    sums = loop("step", 0, whole, lambda number: step(number, number * lanes, lanes))
    if rest == 0:
        return sums
    # What the last vector repeats meets weights of 0, which may not be so much less.
    begin = lanes - rest if less and whole else 0
    return seq(sums, step(whole, max(values - lanes, 0), min(values, lanes), begin))


def template_values(
    values: int, stride: int, channels: int, rescaling: Form, distance: int, less: int = 0
) -> dict[str, object]:
    """Return what the templates are given: what `gemm` is, and the zero point of weights."""
    size, lanes = rescaling.element.bytes, lanes_of(rescaling.element)
    whole, rest = divmod(values, lanes)
    before, loops = _loop(whole) if whole else (0, 0)
    cuts = _cuts(values, rescaling)
    return {
        "rescaling": rescaling.values(),
        "less": halves(-less) if less else "",
        "is_int16": rescaling.stored is DType.INT16,
        "shifts_left": rescaling.shifts_left,
        "adds": rescaling.adds,
        "is_wide": rescaling.is_wide,
        "cuts": str(cuts) if cuts else "",
        "turns_of_part": str(_TURNS_OF_PART),
        **_LOADS[rescaling.element],
        **_STORES[rescaling.stored],
        "stride": str(stride * size),
        "channels": str(channels * rescaling.stored.bytes),
        "distance": str(distance * rescaling.stored.bytes),
        "values": str(values),
        "repeats": str(before) if before else "",
        "turns": str(loops - cuts * _TURNS_OF_PART) if loops else "",
        "repeats_in_turn": str(UNROLL.turn),
        "has_rest": rest > 0,
        "is_vector": steps_of(values, lanes) == 1,
        "masks": whole == 0,
        "back": str((lanes - rest) * size),
        "partial": channels % LANES != 0,
    }


_LOADS: Mapping[DType, Mapping[str, str]] = MappingProxyType({
    DType.INT8: {"element": "8", "load_values": "vldrb.8", "load_some": "vldrbt.8",
                 "load_weights": "vldrb.8", "weights": "16"},
    DType.INT16: {"element": "16", "load_values": "vldrh.16", "load_some": "vldrht.16",
                  "load_weights": "vldrb.s16", "weights": "8"},
})  # fmt: skip
_STORES: Mapping[DType, Mapping[str, str]] = MappingProxyType({
    DType.INT8: {"store": "vstrb.32", "store_some": "vstrbt.32", "stored": "4"},
    DType.INT16: {"store": "vstrh.32", "store_some": "vstrht.32", "stored": "8"},
})  # fmt: skip


def _pixels(count: int) -> str:
    return "1 pixel" if count == 1 else f"{count} pixels"


def _cuts(values: int, rescaling: Form) -> int:
    """Return how often what lies above the lower part of a sum moves to the upper one."""
    turns = _loop(values // lanes_of(rescaling.element))[1] if rescaling.bits else 0
    return max(-(-turns // _TURNS_OF_PART) - 1, 0)


def _printed_body(pixels: int, values: int, channels: int, rescaling: Form, less: int) -> Printed:
    """Return what is printed; how far pixels are apart changes a number alone."""
    numbers = template_values(values, values, channels, rescaling, channels, less)
    return printed(f"kernels/mve/gemm{pixels}.j2", numbers)


def instructions(pixels: int, values: int, channels: int, rescaling: Form, less: int = 0) -> int:
    """Return the instructions of one call, as they are printed."""
    groups, lanes = -(-channels // LANES), lanes_of(rescaling.element)
    sums = groups * _loop(values // lanes)[1] if values >= lanes else 0
    cuts = groups * (_cuts(values, rescaling) + 1)
    turns = {
        **dict.fromkeys(("bne 1b", "bhi 1b"), groups),
        **dict.fromkeys(("bne 2b", "le lr, 2b"), sums),
        **dict.fromkeys(("b 2b", "b 3b"), cuts),
        "letp lr, 5b": steps_of(values),
    }
    return _printed_body(pixels, values, channels, rescaling, less).instructions(turns)


def code_size(pixels: int, values: int, channels: int, rescaling: Form, less: int = 0) -> int:
    """Return the bytes of the kernel, as they are printed."""
    return _printed_body(pixels, values, channels, rescaling, less).bytes


def _loop(steps: int) -> tuple[int, int]:
    """Return steps in front of the loop, all of them if there is none, and how often it runs."""
    before = steps if UNROLL.is_straight(steps) else steps % UNROLL.turn or UNROLL.turn
    return before, (steps - before) // UNROLL.turn
