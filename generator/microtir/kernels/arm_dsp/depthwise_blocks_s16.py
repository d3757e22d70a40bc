"""Blocks of depthwise convolutions of int16: some pixels of two channels, the halves of a word.

A word of inputs is two channels of a tap, and so is a word of weights: products of lower halves and
of upper ones need nothing to be unpacked.  Every word that the windows of a row reach is read once
for all pixels that need it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.arm_dsp.blocks_s16 import IMMEDIATE, PAIR, add_number, registers
from microtir.kernels.common import finish_s16, micro_kernel, requantise, runs
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.measure.printed import Printed, printed
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TEMPLATE = "kernels/depthwise_s16.j2"
_REGISTERS = 8  # for sums; three behind them are for weights
_CHUNK = 3  # taps of a row whose weights are in registers


@dataclass(frozen=True, slots=True)
class DepthwiseBlock16:
    """`pixels` neighbouring pixels of all channels, two at a time."""

    pixels: int
    channels: int
    taps: runs.Taps
    finish: finish_s16.Finish16

    @property
    def turns(self) -> int:
        return len(runs.turns_of(self.channels, PAIR))

    @property
    def reaches(self) -> bool:
        """Return whether loads and stores reach what the block needs."""
        taps, size = self.taps, DType.INT16.bytes
        ahead = (self.pixels - 1) * taps.pixel_step + (taps.columns - 1) * taps.column_step
        outputs = (self.pixels - 1) * self.channels + PAIR
        return max(ahead, outputs) * size <= IMMEDIATE

    @property
    def name(self) -> str:
        return f"depthwise16_{self.pixels}x{self.channels}_{self.taps.name}_{self.finish.name}"

    @property
    def printed(self) -> Printed:
        return printed(_TEMPLATE, self.values())

    @property
    def instructions(self) -> int:
        """Return the instructions of a call, as they are printed."""
        return self.printed.instructions({"bne 1b": self.turns})

    def values(self) -> dict[str, object]:
        size, held = DType.INT16.bytes, PAIR * self.finish.starts
        weight_bytes = self.turns * self.taps.count * PAIR * size
        places = [(pixel, c) for pixel in range(self.pixels) for c in range(PAIR)]
        return {
            "wide": self.finish.is_wide,
            "rows": [self._row(row) for row in range(self.taps.rows)],
            "end_of_weights": add_number("r4", "r1", weight_bytes, "r4"),
            "last_outputs": add_number("r5", "r3", (self.channels - PAIR) * size, "r5"),
            "overlaps": self.channels % PAIR != 0,
            "starts": registers(0, held),
            "copies": [
                {"to": f"r{pixel * held + n}", "of": f"r{n}"}
                for pixel in range(1, self.pixels)
                for n in range(held)
            ],
            "words": registers(_REGISTERS, requantise.WORDS - self.finish.starts),
            "channels": [
                [
                    dict(zip(("low", "high"), self._sum(pixel, channel), strict=True))
                    for pixel in range(self.pixels)
                ]
                for channel in range(PAIR)
            ],
            "stores": [
                {"sum": self._sum(p, c)[0], "offset": str((p * self.channels + c) * size)}
                for p, c in places
            ],
            "rescaling": self.finish.values(),
        }

    def _sum(self, pixel: int, channel: int) -> tuple[str, str]:
        """Return the registers of a sum: its lower word, and its upper one if it is wide."""
        first = (pixel * PAIR + channel) * self.finish.starts
        return f"r{first}", f"r{first + 1}"

    def _chunks(self) -> list[range]:
        columns = self.taps.columns
        return [range(n, min(n + _CHUNK, columns)) for n in range(0, columns, _CHUNK)]

    def _uses(self, chunk: range) -> dict[int, list[tuple[int, int]]]:
        """Return the pixels and the taps of a chunk that need each element of a row."""
        taps = self.taps
        uses: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(self.pixels):
            for tap in chunk:
                place = pixel * taps.pixel_step + tap * taps.column_step
                uses.setdefault(place, []).append((pixel, tap))
        return dict(sorted(uses.items()))

    def _row(self, row: int) -> dict[str, object]:
        step = self.taps.row_step * DType.INT16.bytes
        return {
            "begin": add_number("r12", "r12", step, "r11") if row else [],
            "chunks": [self._chunk(chunk) for chunk in self._chunks()],
        }

    def _chunk(self, chunk: range) -> dict[str, object]:
        words = {tap: f"r{_REGISTERS + n}" for n, tap in enumerate(chunk)}
        registers_of = self.finish.starts
        return {
            "is_one": len(chunk) == 1,
            "weights": ", ".join(words.values()),
            "loads": [
                {
                    "offset": str(place * DType.INT16.bytes),
                    "products": [
                        {
                            "low": ", ".join(self._sum(pixel, 0)[:registers_of]),
                            "high": ", ".join(self._sum(pixel, 1)[:registers_of]),
                            "weights": words[tap],
                        }
                        for pixel, tap in uses
                    ],
                }
                for place, uses in self._uses(chunk).items()
            ],
        }


@made_once
def depthwise_block(block: DepthwiseBlock16) -> KernelDescription:
    """Compute all channels of the pixels of a block.

    Returns:
        Parameters: inputs, weights (turns, rows, columns, 2) int16, what `pack_words` gives,
        outputs (pixels, channels).
    """
    taps, finish, channels = block.taps, block.finish, block.channels
    x = ir.Buffer("x", (taps.reach(block.pixels, channels),), DType.INT16)
    shape = (block.turns, taps.rows, taps.columns, PAIR)
    weights = ir.Buffer("weights", shape, DType.INT16, alignment=4)
    words = ir.Buffer("constants", (block.turns, PAIR * requantise.WORDS), DType.INT32, alignment=4)
    y = ir.Buffer("y", (block.pixels * channels,), DType.INT16)
    total = ir.Buffer("total", (), finish.dtype, ir.Scope.LOCAL)

    def output(turn: te.Expr, pixel: te.Expr, number: te.Expr) -> ir.Stmt:
        channel = te.minimum(turn * PAIR, channels - PAIR) + number

        def product(row: te.Expr, column: te.Expr) -> ir.Stmt:
            place = row * taps.row_step + column * taps.column_step + pixel * taps.pixel_step
            operands = load(x, place + channel), load(weights, turn, row, column, number)
            value, weight = (te.cast(finish.dtype, operand) for operand in operands)
            return store(total, (), load(total) + value * weight)

        def word(n: int) -> te.Expr:
            return load(words, turn, finish.place(number, n, PAIR))

        sums = loop(
            "row", 0, taps.rows,
            lambda row: loop("col", 0, taps.columns, lambda column: product(row, column)),
        )  # fmt: skip
        stored = store(y, (pixel * channels + channel,), finish.output(load(total), word))
        return ir.Allocate(total, seq(store(total, (), finish.start(word)), sums, stored))

    about = f"{block.pixels} x {channels} outputs, {taps.rows}x{taps.columns} taps"
    return micro_kernel.describe(
        block.name,
        (f"Depthwise convolution: {about}",),
        (x, weights, words, y),
        (y,),
        loop("turn", 0, block.turns, lambda turn: loop(
            "pixel", 0, block.pixels, lambda pixel: loop(
                "number", 0, PAIR, lambda number: output(turn, pixel, number)
            )
        )),
        _TEMPLATE,
        block.values(),
        stack_bytes=56,
    )  # fmt: skip


def pack_taps(weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int16]:
    """Return weights (rows, columns, channels) as the kernel reads them."""
    rows, columns, channels = weights.shape
    order = [first + n for first in runs.turns_of(channels, PAIR) for n in range(PAIR)]
    split = weights[:, :, order].reshape(rows, columns, -1, PAIR)
    return np.ascontiguousarray(split.transpose(2, 0, 1, 3).astype(np.int16))
