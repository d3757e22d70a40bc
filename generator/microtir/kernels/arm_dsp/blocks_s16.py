"""Blocks of int16: pixels by output channels, values where they lie, two of a run in a word.

A word of weights has those of two channels for two values: bytes in the order that SXTB16, and
SXTB16 of the rotated word, split into one channel and the other.  Where a run has an odd number of
values, the last one is read alone, and its partner's weights are 0: nothing behind a run is read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common import finish_s16, micro_kernel, packing
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.requantise import WORDS
from microtir.kernels.common.runs import Runs, turns_of
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.measure.printed import Printed, printed
from microtir.schedule import KernelDescription
from microtir.tir import ir

PAIR = 2  # values of a word, and channels of a word of weights
_TEMPLATE = "kernels/block_s16.j2"
_REGISTERS = 8  # for sums
_STRAIGHT = 12  # steps without a loop
_TURNS = (4, 5, 6)  # steps of a turn
_WORD = 4  # bytes
IMMEDIATE = 4095  # the largest offset of a load, and what ADD takes
_MOVW = 0xFFFF


@dataclass(frozen=True, slots=True)
class Block16:
    """`pixels` neighbouring pixels by `channels`, an even number, of them all.

    Outputs of a pixel lie `distance` elements before those of the next one, or right before them.
    """

    pixels: int
    channels: int
    outputs: int
    runs: Runs
    finish: finish_s16.Finish16
    distance: int = 0

    @property
    def turns(self) -> int:
        return len(turns_of(self.outputs, self.channels))

    @property
    def words(self) -> int:
        """Return the words of a run; the last may hold one value."""
        return -(-self.runs.length // PAIR)

    @property
    def steps(self) -> int:
        return self.runs.rows * self.runs.parts * self.words

    @property
    def is_straight(self) -> bool:
        """Return whether all steps of a sum are printed."""
        return self.steps <= _STRAIGHT

    @property
    def whole(self) -> int:
        """Return the steps of a run that read two values."""
        return self.runs.length // PAIR

    @property
    def turn(self) -> int:
        """Return the steps of a turn of the loop over a run; 0 if it has none."""
        if self.whole <= _STRAIGHT:
            return 0
        return min(reversed(_TURNS), key=lambda n: self.whole % n)

    @property
    def name(self) -> str:
        sizes = f"{self.pixels}x{self.channels}of{self.outputs}"
        spacing = f"_{self.distance}" if self.distance > self.outputs else ""
        return f"block16_{sizes}{spacing}_{self.runs.name}_{self.finish.name}"

    @property
    def pitch(self) -> int:
        """Return the elements from the outputs of a pixel to those of the next one."""
        return max(self.distance, self.outputs)

    @property
    def printed(self) -> Printed:
        return printed(_TEMPLATE, self.values())

    @property
    def instructions(self) -> int:
        """Return the instructions of a call, as they are printed."""
        rows = self.turns * self.runs.rows
        parts = rows * self.runs.parts
        repeats = self.whole // self.turn if self.turn else 0
        return self.printed.instructions(
            {"bne 1b": self.turns, "bne 3b": rows, "bne 4b": parts, "bne 2b": parts * repeats}
        )

    @property
    def _loads_pairs(self) -> bool:
        """Return whether there is a register for a second word of weights."""
        return self.pixels == 1 and self.channels % (2 * PAIR) == 0

    def values(self) -> dict[str, object]:
        return {**self._nest(), **self._products(), **self._outputs(), **self._pointers()}

    def _pointers(self) -> dict[str, object]:
        size = self.turns * self.steps * self.channels * PAIR
        last = (self.outputs - self.channels) * DType.INT16.bytes
        return {
            "end_of_weights": add_number("r4", "r1", size, "r4"),
            "last_outputs": add_number("r5", "r3", last, "r5"),
            "overlaps": self.outputs % self.channels != 0,
            "turn_bytes": str(self.channels * DType.INT16.bytes),
            "about": f"{self.channels} channels per iteration.",
        }

    def _nest(self) -> dict[str, object]:
        """Return the loops over rows, parts and words, and how inputs go on behind a run."""
        runs, size = self.runs, DType.INT16.bytes
        part = (runs.part_step - runs.length) * size if runs.parts > 1 else 0
        taken = runs.parts * runs.part_step if runs.parts > 1 else runs.length
        row = (runs.row_step - taken) * size if runs.rows > 1 else 0
        to_part, to_row = (add_number("r12", "r12", n, "r11") if n else [] for n in (part, row))
        printed = [to_part]
        if self.is_straight:
            line = [to_part] * (runs.parts - 1) + [to_part + to_row]
            printed = line * runs.rows
        elif runs.parts == 1:
            printed = [to_row]
        is_rolled = not self.is_straight
        loop_bytes = self.whole // self.turn * self.turn * self._step_bytes if self.turn else 0
        left = self.whole % self.turn if self.turn else self.whole
        return {
            "printed": printed,
            "rows": str(runs.rows) if is_rolled and runs.rows > 1 else "",
            "parts": str(runs.parts) if is_rolled and runs.parts > 1 else "",
            "behind_parts": to_row,
            "loop_bytes": add_number("r11", "lr", loop_bytes, "r11") if loop_bytes else [],
            "repeats": str(self.turn),
            "rest": str(left) if left else "",
            "tail": runs.length % PAIR != 0,
        }

    @property
    def _step_bytes(self) -> int:
        return self.channels * PAIR

    def _sum(self, pixel: int, channel: int) -> tuple[str, str]:
        """Return the registers of a sum: its lower word, and its upper one if it is wide."""
        first = (pixel * self.channels + channel) * self.finish.starts
        return f"r{first}", f"r{first + 1}"

    def _products(self) -> dict[str, object]:
        offset = self.runs.pixel_step * DType.INT16.bytes
        values = [f"r{_REGISTERS + pixel}" for pixel in range(self.pixels)]
        words = [f"r{n}" for n in range(_REGISTERS + self.pixels, 11)]
        at_once = 2 if self._loads_pairs else 1
        behind = [
            f"{{load}} {values[p]}, [r12, #{p * offset}]" for p in range(self.pixels - 1, 0, -1)
        ]
        loads = [*behind, f"{{load}} {values[0]}, [r12], #{{size}}"]
        groups = [
            {
                "load": f"ldrd {words[0]}, {words[1]}, [lr], #8"
                if at_once == 2
                else f"ldr {words[0]}, [lr], #4",
                "pairs": [self._pair(first + n, words[n], values) for n in range(at_once)],
            }
            for first in range(0, self.channels // PAIR, at_once)
        ]
        return {
            "wide": self.finish.is_wide,
            "loads": [text.format(load="ldr", size=_WORD) for text in loads],
            "tail_loads": [text.format(load="ldrh", size=DType.INT16.bytes) for text in loads],
            "weights": groups,
        }

    def _pair(self, pair: int, word: str, values: list[str]) -> dict[str, object]:
        return {
            "word": word,
            "products": [
                {
                    "sum": ", ".join(self._sum(pixel, pair * PAIR + n)[: self.finish.starts]),
                    "value": value,
                    "weights": weights,
                }
                for n, weights in enumerate(("r11", word))
                for pixel, value in enumerate(values)
            ],
        }

    def _outputs(self) -> dict[str, object]:
        held = self.channels * self.finish.starts
        size = DType.INT16.bytes
        places = [(pixel, c) for pixel in range(self.pixels) for c in range(self.channels)]
        return {
            "starts": registers(0, held),
            "raw": self.finish.is_raw,
            "cleared": [f"r{n}" for n in range(held)],
            "copies": [
                {"to": f"r{pixel * held + n}", "of": f"r{n}"}
                for pixel in range(1, self.pixels)
                for n in range(held)
            ],
            "words": registers(_REGISTERS, WORDS - self.finish.starts),
            "channels": [
                [
                    dict(zip(("low", "high"), self._sum(pixel, channel), strict=True))
                    for pixel in range(self.pixels)
                ]
                for channel in range(self.channels)
            ],
            "stores": [
                {"sum": self._sum(p, c)[0], "offset": str((p * self.pitch + c) * size)}
                for p, c in places
            ],
            "rescaling": self.finish.values(),
        }


def registers(first: int, count: int) -> str:
    """Return so many registers as a list of LDM has them."""
    return ", ".join(f"r{first + n}" for n in range(count))


def add_number(to: str, of: str, number: int, free: str) -> list[str]:
    """Return the instructions that add a number, which may need a register."""
    name, size = ("sub", -number) if number < 0 else ("add", number)
    if size <= IMMEDIATE:
        return [f"{name} {to}, {of}, #{size}"]
    upper = [f"movt {free}, #{size >> 16}"] if size > _MOVW else []
    return [f"movw {free}, #{size & _MOVW}", *upper, f"{name} {to}, {of}, {free}"]


@made_once
def block(block: Block16) -> KernelDescription:
    """Compute all channels of the pixels of a block.

    Returns:
        Parameters: inputs, what `pack_weights` and `pack_words` give, outputs (pixels, channels).
        Raw sums of a single pixel have no words; channels are whole turns.
    """
    runs, finish, channels = block.runs, block.finish, block.channels
    x = ir.Buffer("x", (runs.reach(block.pixels),), DType.INT16)
    shape = (block.turns, runs.rows, runs.parts, block.words, channels // PAIR, PAIR, PAIR)
    weights = ir.Buffer("weights", shape, DType.INT8, alignment=4)
    words = ir.Buffer("constants", (block.turns, channels * WORDS), DType.INT32, alignment=4)
    elements = (block.pixels - 1) * block.pitch + block.outputs
    y = ir.Buffer("y", (elements,), finish.output_dtype)
    total = ir.Buffer("total", (), finish.dtype, ir.Scope.LOCAL)

    def output(turn: te.Expr, pixel: te.Expr, number: te.Expr) -> ir.Stmt:
        def word(n: int) -> te.Expr:
            return load(words, turn, finish.place(number, n, channels))

        def product(row: te.Expr, part: te.Expr, i: te.Expr) -> ir.Stmt:
            place = row * runs.row_step + part * runs.part_step + i + pixel * runs.pixel_step
            weight = load(weights, turn, row, part, i // PAIR, number // PAIR, i % PAIR,
                          number % PAIR)  # fmt: skip
            value, factor = (te.cast(finish.dtype, operand) for operand in (load(x, place), weight))
            return store(total, (), load(total) + value * factor)

        sums = loop("row", 0, runs.rows, lambda row: loop(
            "part", 0, runs.parts, lambda part: loop(
                "i", 0, runs.length, lambda i: product(row, part, i)
            )
        ))  # fmt: skip
        first = te.minimum(turn * channels, block.outputs - channels)
        place = pixel * block.pitch + first + number
        stored = store(y, (place,), finish.output(load(total), word))
        return ir.Allocate(total, seq(store(total, (), finish.start(word)), sums, stored))

    return micro_kernel.describe(
        block.name,
        (f"Convolution: {block.pixels} x {block.outputs} outputs, {channels} channels at a time",),
        (x, weights, y) if finish.is_raw else (x, weights, words, y),
        (y,),
        loop("turn", 0, block.turns, lambda turn: loop(
            "pixel", 0, block.pixels, lambda pixel: loop(
                "number", 0, channels, lambda number: output(turn, pixel, number)
            )
        )),
        _TEMPLATE,
        block.values(),
        stack_bytes=68,
    )  # fmt: skip


def packed_bytes(block: Block16, finish: finish_s16.Found16) -> int:
    """Return the bytes of what `pack_weights` and `pack_words` give."""
    runs = block.runs
    values = runs.rows * runs.parts * block.words * PAIR
    return packing.channel_bytes(block.turns * block.channels, 1, values, finish[1].shape[1])


def pack_weights(matrix: npt.NDArray[np.int8], block: Block16) -> npt.NDArray[np.int8]:
    """Return weights (channels, K), K in the order of runs, as the kernel reads them.

    (turns, rows, parts, words, pairs of channels, 2 values, 2 channels).
    """
    runs, channels = block.runs, block.channels
    order = [first + n for first in turns_of(block.outputs, channels) for n in range(channels)]
    taken = matrix[order].reshape(block.turns, channels, runs.rows, runs.parts, runs.length)
    odd = runs.length % PAIR
    padded = np.pad(taken, ((0, 0), (0, 0), (0, 0), (0, 0), (0, odd)))
    split = padded.reshape(
        block.turns, channels // PAIR, PAIR, runs.rows, runs.parts, block.words, PAIR
    )
    packed: npt.NDArray[np.int8] = split.transpose(0, 3, 4, 5, 1, 6, 2)
    return packed
