"""What the micro-kernels of pooling compute; each CPU has assembly of its own for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from microtir import te
from microtir.config.features import Feature
from microtir.kernels.common.micro_kernel import describe, repeated
from microtir.kernels.common.statements import load, loop, store
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

_WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class Assembly:
    """How a CPU computes a kernel: template, what that is given, bytes that it pushes."""

    template: str
    values: Mapping[str, object]
    stack_bytes: int
    needs: Feature


def add_run(pixels: int, channels: int, assembly: Assembly) -> KernelDescription:
    """Add neighbouring pixels to 16-bit sums; parameters: the first pixel, sums."""
    x, sums = ir.Buffer("x", (pixels * channels,), DType.INT8), _sums(channels, DType.INT16)

    def element(pixel: te.Expr, channel: te.Expr) -> te.Expr:
        value = te.cast(DType.INT32, load(x, pixel * channels + channel))
        return te.cast(DType.INT16, te.cast(DType.INT32, load(sums, channel)) + value)

    about = f"Adds {_pixels(pixels)} of {channels} channels to sums"
    body = _each(pixels, channels, lambda p, c: store(sums, (c,), element(p, c)))
    return _described(f"add_{pixels}x{channels}", about, (x, sums), body, assembly)


def max_run(pixels: int, channels: int, assembly: Assembly) -> KernelDescription:
    """Compute maxima of neighbouring pixels and earlier ones.

    Parameters: the first pixel, maxima.
    """
    x, top = ir.Buffer("x", (pixels * channels,), DType.INT8), _sums(channels, DType.INT8)

    def element(pixel: te.Expr, channel: te.Expr) -> te.Expr:
        return te.maximum(load(top, channel), load(x, pixel * channels + channel))

    about = f"Largest of {_pixels(pixels)} of {channels} channels and of earlier ones"
    body = _each(pixels, channels, lambda p, c: store(top, (c,), element(p, c)))
    return _described(f"max_{pixels}x{channels}", about, (x, top), body, assembly)


def average(
    count: int, channels: int, low: int, high: int, assembly: Assembly
) -> KernelDescription:
    """Compute sums of `count` elements divided, halves away from zero; parameters: sums, output.

    The division of the magnitude is a multiplication by the reciprocal, rounded up, of which the
    high word is exact for every sum (see `divides_exactly`).
    """
    sums, y = _sums(channels, DType.INT16), ir.Buffer("y", (channels,), DType.INT8)

    def element(channel: te.Expr) -> ir.Stmt:
        total = te.cast(DType.INT32, load(sums, channel))
        magnitude = (te.select(total < 0, -total, total) + count // 2) // count
        rounded = te.clamp(te.select(total < 0, -magnitude, magnitude), low, high)
        return store(y, (channel,), te.cast(DType.INT8, rounded))

    name = f"average_{count}x{channels}_{low}_{high}".replace("-", "m")
    body = loop("channel", 0, channels, element)
    return _described(name, f"Averages of {count} elements", (sums, y), body, assembly)


def average_values(count: int, channels: int, low: int, high: int) -> Mapping[str, str]:
    """Return what the templates of an average are given."""
    reciprocal = _reciprocal(count)
    return {
        "channels": str(channels),
        "half": str(count // 2),
        "reciprocal_low": str(reciprocal & 0xFFFF),
        "reciprocal_high": str(reciprocal >> 16),
        "low": "" if low == DType.INT8.min else str(low),
        "high": "" if high == DType.INT8.max else str(high),
    }


def run_values(pixels: int, channels: int, printed: int, step: int) -> Mapping[str, str | bool]:
    """Return what the templates of a run are given.

    Args:
        pixels: of the run.
        channels: of a pixel.
        printed: pixels of a turn at most.
        step: largest one that a load takes.
    """
    parts = repeated(pixels, printed)
    turns = pixels // int(parts["repeats"]) if parts["loops"] else 1
    return {
        **parts,
        "turns": str(turns),
        "channels": str(channels),
        "steps_far": channels > step,
    }


def divides_exactly(count: int) -> bool:
    """Return whether `average` can divide by `count`, and 16 bits hold its sums.

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


def _pixels(count: int) -> str:
    return "1 pixel" if count == 1 else f"{count} pixels"


def _described(
    name: str, about: str, params: tuple[ir.Buffer, ir.Buffer], body: ir.Stmt, assembly: Assembly
) -> KernelDescription:
    """Describe a kernel that writes the second of its parameters."""
    return describe(
        name, (about,), params, params[1:], body, assembly.template, assembly.values,
        assembly.stack_bytes, assembly.needs,
    )  # fmt: skip
