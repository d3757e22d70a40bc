"""Meanings of the micro-kernels of pooling; each CPU has assembly of its own for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe, repeated
from microtir.kernels.common.statements import load, loop, store
from microtir.schedule import KernelDescription
from microtir.tir import ir

_WORD = 1 << 32


@dataclass(frozen=True, slots=True)
class Assembly:
    """A CPU's assembly for a kernel: its template, the template's arguments, bytes pushed."""

    template: str
    values: Mapping[str, object]
    stack_bytes: int


class PoolKernels(ABC):
    """The micro-kernels of an instruction set, and what they take.

    Args:
        copy: the kernel that moves so many bytes; parameters: from, to.
        fill: the kernel that sets so many elements to a value of a type; parameter: to.

    Attributes:
        needs: what the assembly takes of a CPU.
        cycles: what 100 of its instructions take.
        printed: pixels of a turn of a run at most.
        longest_step: between pixels, that a load takes.
        average_template: assembly of averages.
        average_stack: bytes that it pushes.
        code_bytes: of averages and of maxima, beyond those of the direct kernel.
    """

    needs: Feature
    cycles: int
    printed: int
    longest_step: int
    average_template: str
    average_stack: int
    code_bytes: tuple[int, int]

    def __init__(
        self,
        copy: Callable[[int], KernelDescription],
        fill: Callable[[int, int, DType], KernelDescription],
    ) -> None:
        self.copy, self.fill = copy, fill

    @abstractmethod
    def run_assembly(self, pixels: int, channels: int, dtype: DType) -> Assembly:
        """Return the assembly of a run: sums of 16 bits, or maxima of 8."""

    @abstractmethod
    def run_cost(self, channels: int, dtype: DType) -> tuple[int, int]:
        """Return the instructions of a run beside its pixels, and of each of these."""

    @abstractmethod
    def pixel_cost(self, channels: int) -> int:
        """Return the instructions of an output pixel beside its runs and what follows them."""

    @abstractmethod
    def finish_cost(self, channels: int, dtype: DType) -> int:
        """Return the instructions that make outputs of sums, or of maxima."""

    @made_once
    def add_run(self, pixels: int, channels: int) -> KernelDescription:
        """Add neighbouring pixels to 16-bit sums; parameters: the first pixel, sums."""
        x, sums = ir.Buffer("x", (pixels * channels,), DType.INT8), _sums(channels, DType.INT16)

        def element(pixel: te.Expr, channel: te.Expr) -> te.Expr:
            value = te.cast(DType.INT32, load(x, pixel * channels + channel))
            return te.cast(DType.INT16, te.cast(DType.INT32, load(sums, channel)) + value)

        about = f"Adds {_pixels(pixels)} of {channels} channels to sums"
        body = _each(pixels, channels, lambda p, c: store(sums, (c,), element(p, c)))
        assembly = self.run_assembly(pixels, channels, sums.dtype)
        return self._described(f"add_{pixels}x{channels}", about, (x, sums), body, assembly)

    @made_once
    def max_run(self, pixels: int, channels: int) -> KernelDescription:
        """Compute maxima of neighbouring pixels and earlier ones.

        Parameters: the first pixel, maxima.
        """
        x, top = ir.Buffer("x", (pixels * channels,), DType.INT8), _sums(channels, DType.INT8)

        def element(pixel: te.Expr, channel: te.Expr) -> te.Expr:
            return te.maximum(load(top, channel), load(x, pixel * channels + channel))

        about = f"Largest of {_pixels(pixels)} of {channels} channels and of earlier ones"
        body = _each(pixels, channels, lambda p, c: store(top, (c,), element(p, c)))
        assembly = self.run_assembly(pixels, channels, top.dtype)
        return self._described(f"max_{pixels}x{channels}", about, (x, top), body, assembly)

    @made_once
    def average(self, count: int, channels: int, low: int, high: int) -> KernelDescription:
        """Compute sums of `count` elements divided, halves away from zero.

        Parameters: sums, output.  The division of the magnitude is a multiplication by the
        reciprocal, rounded up, of which the high word is exact for every sum (see
        `divides_exactly`).
        """
        sums, y = _sums(channels, DType.INT16), ir.Buffer("y", (channels,), DType.INT8)

        def element(channel: te.Expr) -> ir.Stmt:
            total = te.cast(DType.INT32, load(sums, channel))
            magnitude = (te.select(total < 0, -total, total) + count // 2) // count
            rounded = te.clamp(te.select(total < 0, -magnitude, magnitude), low, high)
            return store(y, (channel,), te.cast(DType.INT8, rounded))

        reciprocal = _reciprocal(count)
        values = {
            "channels": str(channels),
            "half": str(count // 2),
            "reciprocal_low": str(reciprocal & 0xFFFF),
            "reciprocal_high": str(reciprocal >> 16),
            "low": "" if low == DType.INT8.min else str(low),
            "high": "" if high == DType.INT8.max else str(high),
        }
        assembly = Assembly(self.average_template, values, self.average_stack)
        name = f"average_{count}x{channels}_{low}_{high}".replace("-", "m")
        body = loop("channel", 0, channels, element)
        return self._described(name, f"Averages of {count} elements", (sums, y), body, assembly)

    def run_values(self, pixels: int, channels: int) -> Mapping[str, str | bool]:
        """Return what the templates of a run are given."""
        parts = repeated(pixels, self.printed)
        turns = pixels // int(parts["repeats"]) if parts["loops"] else 1
        return {
            **parts,
            "turns": str(turns),
            "channels": str(channels),
            "steps_far": channels > self.longest_step,
        }

    def _described(
        self,
        name: str,
        about: str,
        params: tuple[ir.Buffer, ir.Buffer],
        body: ir.Stmt,
        assembly: Assembly,
    ) -> KernelDescription:
        """Describe a kernel that writes the second of its parameters."""
        return describe(
            name, (about,), params, params[1:], body, assembly.template, assembly.values,
            assembly.stack_bytes, self.needs,
        )  # fmt: skip


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
