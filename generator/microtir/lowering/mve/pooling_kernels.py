"""Micro-kernels of pooling: all channels of a run of pixels into scratch, and from there out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from microtir import te
from microtir.config.features import Feature
from microtir.lowering.dsp.code import load, loop, store
from microtir.lowering.dsp.micro_kernel import describe, repeated
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_PRINTED = 16  # pixels of a turn at most
_IMMEDIATE = 127  # largest step of a load of bytes
_WORD = 1 << 32


def add_run(pixels: int, channels: int) -> KernelDescription:
    """Adds neighbouring pixels to 16-bit sums; parameters: the first pixel, sums."""
    x, sums = ir.Buffer("x", (pixels * channels,), DType.INT8), _sums(channels, DType.INT16)

    def element(pixel: te.Expr, channel: te.Expr) -> te.Expr:
        value = te.cast(DType.INT32, load(x, pixel * channels + channel))
        return te.cast(DType.INT16, te.cast(DType.INT32, load(sums, channel)) + value)

    return describe(
        f"add_{pixels}x{channels}",
        (f"Adds {pixels} pixels of {channels} channels to sums",),
        (x, sums),
        (sums,),
        _each(pixels, channels, lambda p, c: store(sums, (c,), element(p, c))),
        "kernels/mve/pool_run.j2",
        {**_run(pixels, channels), "width": "16", "lanes": "8", "load": "vldrb.s16",
         "load_sum": "vldrh.u16", "store_sum": "vstrh.16", "operation": "vadd.i16"},
        stack_bytes=8,
        needs=Feature.MVE,
    )  # fmt: skip


def max_run(pixels: int, channels: int) -> KernelDescription:
    """Maxima of neighbouring pixels and earlier ones; parameters: the first pixel, maxima."""
    x, top = ir.Buffer("x", (pixels * channels,), DType.INT8), _sums(channels, DType.INT8)
    return describe(
        f"max_{pixels}x{channels}",
        (f"Largest of {pixels} pixels of {channels} channels",),
        (x, top),
        (top,),
        _each(
            pixels, channels,
            lambda p, c: store(top, (c,), te.maximum(load(top, c), load(x, p * channels + c))),
        ),
        "kernels/mve/pool_run.j2",
        {**_run(pixels, channels), "width": "8", "lanes": "16", "load": "vldrb.u8",
         "load_sum": "vldrb.u8", "store_sum": "vstrb.8", "operation": "vmax.s8"},
        stack_bytes=8,
        needs=Feature.MVE,
    )  # fmt: skip


def average(count: int, channels: int, low: int, high: int) -> KernelDescription:
    """Sums of `count` elements divided, halves away from zero; parameters: sums, output.

    The division of the magnitude is a multiplication by the reciprocal, rounded up, of which the
    high word is exact for every sum (see `divides_exactly`).
    """
    sums, y = _sums(channels, DType.INT16), ir.Buffer("y", (channels,), DType.INT8)

    def element(channel: te.Expr) -> ir.Stmt:
        total = te.cast(DType.INT32, load(sums, channel))
        magnitude = (te.select(total < 0, -total, total) + count // 2) // count
        rounded = te.clamp(te.select(total < 0, -magnitude, magnitude), low, high)
        return store(y, (channel,), te.cast(DType.INT8, rounded))

    reciprocal = _reciprocal(count)
    return describe(
        f"average_{count}x{channels}_{low}_{high}".replace("-", "m"),
        (f"Averages of {count} elements",),
        (sums, y),
        (y,),
        loop("channel", 0, channels, element),
        "kernels/mve/pool_average.j2",
        {
            "channels": str(channels),
            "half": str(count // 2),
            "reciprocal_low": str(reciprocal & 0xFFFF),
            "reciprocal_high": str(reciprocal >> 16),
            "low": "" if low == DType.INT8.min else str(low),
            "high": "" if high == DType.INT8.max else str(high),
        },
        stack_bytes=16,
        needs=Feature.MVE,
    )


def divides_exactly(count: int) -> bool:
    """Whether `average` can divide by `count`, and 16 bits hold its sums.

    The reciprocal is too large by e / count, so that a quotient n / count is right if n * e stays
    below 2^32.
    """
    largest = -DType.INT8.min * count + count // 2
    if count < 2 or largest > DType.INT16.max:
        return False
    return largest * (_reciprocal(count) * count - _WORD) < _WORD


def _reciprocal(count: int) -> int:
    return -(-_WORD // count)


def _sums(channels: int, dtype: DType) -> ir.Buffer:
    return ir.Buffer("sums", (channels,), dtype, alignment=4)


def _each(pixels: int, channels: int, body: Callable[[te.Expr, te.Expr], ir.Stmt]) -> ir.Stmt:
    return loop(
        "channel", 0, channels, lambda c: loop("pixel", 0, pixels, lambda p: body(p, c))
    )  # fmt: skip


def _run(pixels: int, channels: int) -> Mapping[str, object]:
    """What the template of a run is given, whatever it computes."""
    parts = repeated(pixels, _PRINTED)
    turns = pixels // int(parts["repeats"]) if parts["loops"] else 1
    return {
        **parts,
        "turns": str(turns),
        "channels": str(channels),
        "steps_far": channels > _IMMEDIATE,
    }
