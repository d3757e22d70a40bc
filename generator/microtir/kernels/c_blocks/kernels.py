"""Register blocks: pixels by channels of a convolution, pixels of a depthwise one, dense outputs.

Every function returns a micro-kernel with the parameters x, weights, table (if the finish has one)
and y; table rows are channels in the order of the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from microtir import te
from microtir.kernels.c_blocks.finish import Finish
from microtir.kernels.c_blocks.kernel import (
    accumulate,
    accumulators,
    portable,
    started,
    unrolled,
)
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import each, let, load, loop, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType


@dataclass(frozen=True, slots=True)
class Runs:
    """What a pixel of a convolution reads: `rows` times `parts` runs of `length` elements.

    `row_step` and `part_step` are elements between the first ones of neighbouring runs,
    `pixel_step` those between neighbouring pixels.
    """

    rows: int
    parts: int
    length: int
    row_step: int
    part_step: int
    pixel_step: int

    def reach(self, pixels: int) -> int:
        """Elements from the first to behind the last one of `pixels` pixels."""
        last = (self.rows - 1) * self.row_step + (self.parts - 1) * self.part_step
        return last + (pixels - 1) * self.pixel_step + self.length

    @property
    def taps(self) -> int:
        """Products of one output."""
        return self.rows * self.parts * self.length

    @property
    def name(self) -> str:
        """Distinguishes kernels."""
        steps = f"{self.row_step}_{self.part_step}_{self.pixel_step}"
        return f"{self.rows}x{self.parts}x{self.length}_{steps}"


@dataclass(frozen=True, slots=True)
class Block:
    """`pixels` neighbouring pixels by `channels` output channels; a run goes `turn` at a time.

    Where operands are read `in_turn`, those of one product are in registers at a time: the weights
    of a block, and one or two of its pixels.
    """

    pixels: int
    channels: int
    turn: int
    in_turn: bool = False

    @property
    def name(self) -> str:
        """Distinguishes kernels, but for pixels and channels."""
        return f"{self.turn}{'_in_turn' * self.in_turn}"


def turns_of(channels: int, together: int) -> list[int]:
    """First channel of each turn of `together` channels; the last turn may overlap."""
    return [min(first, channels - together) for first in range(0, channels, together)]


@made_once
def product(block: Block, runs: Runs, channels: int, finish: Finish) -> KernelDescription:
    """All `channels` (at least those of the block) of the pixels of a block.

    Weights are (turns, rows, parts, length * block.channels), turns those of `turns_of`.
    """
    return _Product(block, runs, channels, finish).kernel()


class _Product:
    def __init__(self, block: Block, runs: Runs, channels: int, finish: Finish) -> None:
        self.block, self.runs, self.channels, self.finish = block, runs, channels, finish
        self.turns = -(-channels // block.channels)
        shape = (self.turns, runs.rows, runs.parts, runs.length * block.channels)
        self.x = ir.Buffer("x", (runs.reach(block.pixels),), finish.element)
        self.weights = ir.Buffer("weights", shape, finish.element)
        self.table = ir.Buffer("table", (self.turns * block.channels, finish.words), finish.sum)
        self.y = ir.Buffer("y", (block.pixels * channels,), finish.element)
        self.sums = accumulators(block.pixels * block.channels, finish.sum)

    def kernel(self) -> KernelDescription:
        pixels, together, words = self.block.pixels, self.block.channels, self.finish.words
        name = f"{self.runs.name}_{self.channels}_{self.finish.name}_{self.block.name}"
        return portable(
            f"block{pixels}x{together}_{name}",
            f"Convolution: {pixels} x {self.channels} outputs, {together} channels at a time",
            (self.x, self.weights, *((self.table,) if words else ()), self.y),
            self.y,
            each("turn", self.turns, self.turn),
        )

    def turn(self, turn: te.Expr) -> ir.Stmt:
        """All pixels of the channels of one turn."""
        together = self.block.channels
        products = each(
            "row", self.runs.rows,
            lambda row: each("part", self.runs.parts, lambda part: self.run(turn, row, part)),
        )  # fmt: skip
        starts = [self.finish.start(self.table, turn * together + n) for n in range(together)]
        outputs = (self.outputs(turn, n) for n in range(together))
        return started(self.sums, starts * self.block.pixels, seq(products, *outputs))

    def run(self, turn: te.Expr, row: te.Expr, part: te.Expr) -> ir.Stmt:
        """The products of one run."""
        start = row * self.runs.row_step + part * self.runs.part_step
        step, together = self.block.turn, self.block.channels

        def element(i: te.Expr, k: int) -> ir.Stmt:
            first = i * (step * together)

            def weight(n: int) -> te.Expr:
                return load(self.weights, turn, row, part, first + (k * together + n))

            return self.multiply(start + i * step + k, weight, ())

        return unrolled("i", self.runs.length, step, element)

    def multiply(
        self, first: te.Expr, weight: Callable[[int], te.Expr], named: tuple[te.Expr, ...]
    ) -> ir.Stmt:
        """Adds one element of each pixel to its sums: weights first, then pixel by pixel."""
        wide, together = self.finish.sum, self.block.channels
        if len(named) < together:
            n, operand = len(named), te.cast(wide, weight(len(named)))
            return let(
                f"w{n}", operand if named else self.read(operand),
                lambda w: self.multiply(first, weight, (*named, w)),
            )  # fmt: skip

        def pixel(p: int, value: te.Expr) -> ir.Stmt:
            owned = self.sums[p * together : (p + 1) * together]
            return seq(*(
                accumulate(s, self.finish.product(value, w))
                for s, w in zip(owned, named, strict=True)
            ))  # fmt: skip

        values = [load(self.x, first + p * self.runs.pixel_step) for p in range(self.block.pixels)]
        return seq(
            *(
                let("value", self.read(te.cast(wide, v)), partial(pixel, p))
                for p, v in enumerate(values)
            )
        )

    def read(self, operand: te.Expr) -> te.Expr:
        """An operand; behind the products before it where compilers would read it too early."""
        return te.in_turn(operand) if self.block.in_turn else operand

    def outputs(self, turn: te.Expr, number: int) -> ir.Stmt:
        """All pixels of one channel."""
        together, channels = self.block.channels, self.channels
        first = turn * together
        if channels % together:
            first = te.minimum(first, channels - together)
        return self.finish.each(
            self.table,
            turn * together + number,
            [load(s) for s in self.sums[number::together]],
            lambda p, value: store(self.y, (first + (p * channels + number),), value),
        )


@dataclass(frozen=True, slots=True)
class Taps:
    """A depthwise window: `columns` of each row are `column_step` elements apart, and so on."""

    rows: int
    columns: int
    row_step: int
    column_step: int
    pixel_step: int

    def reach(self, pixels: int, channels: int) -> int:
        """Elements from the first to behind the last one of `pixels` pixels."""
        last = (self.rows - 1) * self.row_step + (self.columns - 1) * self.column_step
        return last + (pixels - 1) * self.pixel_step + channels

    @property
    def count(self) -> int:
        return self.rows * self.columns

    @property
    def name(self) -> str:
        """Distinguishes kernels."""
        steps = f"{self.row_step}_{self.column_step}_{self.pixel_step}"
        return f"{self.rows}x{self.columns}_{steps}"

    def loads(self, pixels: int) -> list[tuple[int, list[tuple[int, int]]]]:
        """Elements of one row in order, each with the (pixel, column) that multiply it."""
        found: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(pixels):
            for column in range(self.columns):
                offset = pixel * self.pixel_step + column * self.column_step
                found.setdefault(offset, []).append((pixel, column))
        return sorted(found.items())


@made_once
def depthwise(
    pixels: int, taps: Taps, channels: int, finish: Finish, *, rolled: bool, in_turn: bool
) -> KernelDescription:
    """All channels of `pixels` neighbouring pixels, channel by channel; weights (channels, taps).

    Args:
        pixels: whose sums are kept together.
        taps: of the window.
        channels: of input and output.
        finish: of the sums.
        rolled: keep the loop over rows of the window: less code.
        in_turn: read the weights of a row behind the products of the row before.
    """
    x = ir.Buffer("x", (taps.reach(pixels, channels),), finish.element)
    weights = ir.Buffer("weights", (channels, taps.rows, taps.columns), finish.element)
    table = ir.Buffer("table", (channels, finish.words), finish.sum)
    y = ir.Buffer("y", (pixels * channels,), finish.element)
    sums = accumulators(pixels, finish.sum)

    def row_of(channel: te.Expr, row: te.Expr, named: tuple[te.Expr, ...]) -> ir.Stmt:
        if len(named) < taps.columns:
            weight = te.cast(finish.sum, load(weights, channel, row, len(named)))
            if in_turn and not named:
                weight = te.in_turn(weight)
            return let(f"w{len(named)}", weight, lambda w: row_of(channel, row, (*named, w)))

        def products(uses: list[tuple[int, int]], value: te.Expr) -> ir.Stmt:
            return seq(*(
                accumulate(sums[p], finish.product(value, named[column])) for p, column in uses
            ))  # fmt: skip

        first = channel + row * taps.row_step
        return seq(*(
            let("value", te.cast(finish.sum, load(x, first + offset)), partial(products, uses))
            for offset, uses in taps.loads(pixels)
        ))  # fmt: skip

    def one(channel: te.Expr) -> ir.Stmt:
        if rolled:
            products = each("row", taps.rows, lambda row: row_of(channel, row, ()))
        else:
            rows = [te.as_expr(row, DType.INT32) for row in range(taps.rows)]
            products = seq(*(row_of(channel, row, ()) for row in rows))
        outputs = finish.each(
            table, channel, [load(s) for s in sums],
            lambda p, value: store(y, (channel + p * channels,), value),
        )  # fmt: skip
        starts = [finish.start(table, channel)] * pixels
        return started(sums, starts, seq(products, outputs))

    return portable(
        f"depthwise_block{pixels}_{taps.name}_{channels}_{finish.name}{'_in_turn' * in_turn}",
        f"Depthwise convolution: {pixels} x {channels} outputs, {taps.rows}x{taps.columns} taps",
        (x, weights, table, y) if finish.words else (x, weights, y),
        y,
        loop("channel", 0, channels, one),
    )
