"""Register blocks: pixels by channels of a convolution, pixels of a depthwise one, dense outputs.

Every function returns a micro-kernel with the parameters x, weights, table (if the finish has one)
and y; table rows are channels in the order of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Protocol

from microtir import te
from microtir.dtype import DType
from microtir.kernels.c_blocks.finish import Finish
from microtir.kernels.c_blocks.kernel import portable, unroll_all
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.runs import Runs, Taps, turns_of
from microtir.kernels.common.unrolling import unroll_by
from microtir.schedule import KernelDescription, Schedule


class Native(Protocol):
    """The code that an instruction set has for blocks, whose C is what other compilers take."""

    def attached(self, twin: KernelDescription, size: BlockSize) -> KernelDescription:
        """Return a micro-kernel with that code."""

    def instructions(self, size: BlockSize) -> int:
        """Return the instructions of a call."""

    def code_bytes(self, size: BlockSize) -> int:
        """Return the bytes of the code."""

    def copy(self, size: int, dtype: DType) -> KernelDescription:
        """Return what moves so many elements; parameters: from, to."""

    def copied(self, size: int, dtype: DType) -> int:
        """Return its instructions."""


@dataclass(frozen=True, slots=True)
class Block:
    """`pixels` neighbouring pixels by `channels` output channels; a run goes `turn` at a time.

    Where operands are read `in_turn`, those of one product are in registers at a time: the weights
    of a block, and one or two of its pixels.  `native` has code for it.
    """

    pixels: int
    channels: int
    turn: int
    in_turn: bool = False
    native: Native | None = None

    @property
    def name(self) -> str:
        """Distinguish kernels, but for pixels and channels."""
        return f"{self.turn}{'_in_turn' * self.in_turn}{'_native' * (self.native is not None)}"


@dataclass(frozen=True, slots=True)
class Spread:
    """The groups of channels of a layer, each of some inputs behind those of the group before.

    Outputs of a pixel are `distance` elements from those of the next.
    """

    groups: int = 1
    distance: int = 0

    def name(self, channels: int) -> str:
        groups = f"_groups{self.groups}" * (self.groups > 1)
        return groups + f"_apart{self.distance}" * (self.distance > channels * self.groups)


@dataclass(frozen=True, slots=True)
class Columns:
    """A matrix in place of packed weights: elements from a column to the next, and of a run."""

    pitch: int
    step: int


@dataclass(frozen=True, slots=True)
class BlockSize:
    """All that a micro-kernel of `product` is specialised for."""

    block: Block
    runs: Runs
    channels: int
    finish: Finish
    spread: Spread = Spread()
    columns: Columns | None = None

    @property
    def distance(self) -> int:
        """Return elements from the outputs of a pixel to those of the next."""
        return self.spread.distance or self.channels * self.spread.groups


@made_once
def product(
    block: Block,
    runs: Runs,
    channels: int,
    finish: Finish,
    spread: Spread = Spread(),
    columns: Columns | None = None,
) -> KernelDescription:
    """Compute all `channels` (at least those of the block) of each group of a block of pixels.

    Weights are (turns, rows, parts, length * block.channels), turns those of `turns_of` for each
    group, unless they are `columns` of a matrix.
    """
    at_once, own_turns = block.channels, len(turns_of(channels, block.channels))
    turns = own_turns * spread.groups
    x = te.placeholder(
        (runs.reach(block.pixels) + (spread.groups - 1) * runs.length,), finish.element, "x"
    )
    weights, weight = _weights(runs, turns, channels, finish, block, columns)
    table = te.placeholder((turns * at_once, finish.words), finish.constant, "table")
    value = te.compute(x.shape, lambda n: _operand(finish, x[n], block.in_turn), "value")

    def output(turn: te.Expr, number: te.Expr, pixel: te.Expr) -> te.Expr:
        row, part = te.reduce_axis(0, runs.rows, "row"), te.reduce_axis(0, runs.parts, "part")
        i = te.reduce_axis(0, runs.length, "i")
        place = row * runs.row_step + part * runs.part_step + i * runs.step
        place = place + pixel * runs.pixel_step
        if spread.groups > 1:
            place = place + turn // own_turns * runs.length
        term = finish.product(value[place], weight[turn, row, part, i, number])
        channel = turn * at_once + number
        total = te.sum(term, (row, part, i), init=finish.start(table, channel))
        return finish.output(table, channel, total)

    def place(turn: te.Expr, number: te.Expr, pixel: te.Expr) -> tuple[te.Expr]:
        first = _first_of(turn, channels, at_once)
        if spread.groups > 1:
            first = _first_of(turn % own_turns, channels, at_once) + turn // own_turns * channels
        return (first + (pixel * distance + number),)

    shape, every = (turns, at_once, block.pixels), channels * spread.groups
    distance = spread.distance or every
    reach = (block.pixels - 1) * distance + every
    y = te.compute(shape, output, "y", store=place, buffer_shape=(reach,))
    about = "Convolution" if columns is None else "Matrix product"
    lying = "" if columns is None else f"_columns{columns.pitch}_{columns.step}"
    name = f"{runs.name}_{channels}{spread.name(channels)}{lying}_{finish.name}_{block.name}"
    twin = portable(
        f"block{block.pixels}x{at_once}_{name}",
        f"{about}: {block.pixels} x {every} outputs, {at_once} channels at a time",
        _sums_in_registers(y, value, weight, runs.length, block.turn),
        (x, weights, *((table,) if finish.words else ()), y),
    )
    size = BlockSize(block, runs, channels, finish, spread, columns)
    return twin if block.native is None else block.native.attached(twin, size)


def _first_of(turn: te.Expr, channels: int, at_once: int) -> te.Expr:
    first = turn * at_once
    return te.minimum(first, channels - at_once) if channels % at_once else first


def _weights(
    runs: Runs, turns: int, channels: int, finish: Finish, block: Block, columns: Columns | None
) -> tuple[te.Tensor, te.Tensor]:
    """Return the weights of a block, packed or columns of a matrix, and each as it is used."""
    at_once = block.channels
    if columns is None:
        shape: tuple[int, ...] = (turns, runs.rows, runs.parts, runs.length * at_once)
    else:
        shape = ((channels - 1) * columns.pitch + (runs.length - 1) * columns.step + 1,)
    weights = te.placeholder(shape, finish.weight, "weights")

    def operand(t: te.Expr, r: te.Expr, p: te.Expr, n: te.Expr, number: te.Expr) -> te.Expr:
        if columns is None:
            element = weights[t, r, p, n * at_once + number]
        else:
            column = _first_of(t, channels, at_once) + number
            element = weights[column * columns.pitch + n * columns.step]
        return _operand(finish, element, block.in_turn, number == 0)

    extents = (turns, runs.rows, runs.parts, runs.length, at_once)
    return weights, te.compute(extents, operand, "w")


def _sums_in_registers(
    y: te.Tensor, value: te.Tensor, weight: te.Tensor, length: int, turn: int
) -> Schedule:
    """Schedules a block term by term: weights of all channels, then an element of each pixel."""
    steps = te.create_schedule(y)
    row, part, i, number, pixel = (
        steps.loop(y, name) for name in ("row", "part", "i", "number", "pixel")
    )
    steps.cache_write(number)
    steps.reorder(steps.loop(y, "pixel_init"), steps.loop(y, "number_init"))
    steps.reorder(row, part, i, pixel, number)
    steps.compute_at(weight, i)
    steps.compute_at(value, pixel)
    for tensor, axis in ((weight, "number"), (y, "number"), (y, "pixel")):
        unroll_all(steps, tensor, axis)
    unroll_by(steps, i, length, turn)
    return steps


def _operand(
    finish: Finish, element: te.Expr, in_turn: bool, is_first: te.Expr | bool = True
) -> te.Expr:
    """Widens an element; `in_turn` keeps compilers from reading it before earlier products."""
    value = te.cast(finish.sum, element)
    return te.select(is_first, te.compiler_barrier(value), value) if in_turn else value


@made_once
def depthwise(
    pixels: int, taps: Taps, channels: int, finish: Finish, *, rolled: bool, in_turn: bool
) -> KernelDescription:
    """Compute all channels of `pixels` neighbouring pixels, channel by channel.

    Weights (channels, taps).

    Every element that the windows of a row reach is read once, for all pixels that need it.

    Args:
        pixels: whose sums are kept together.
        taps: of the window.
        channels: of input and output.
        finish: of the sums.
        rolled: keep the loop over rows of the window: less code.
        in_turn: read the weights of a row behind the products of the row before.
    """
    x = te.placeholder((taps.reach(pixels, channels),), finish.element, "x")
    weights = te.placeholder((channels, taps.rows, taps.columns), finish.weight, "weights")
    table = te.placeholder((channels, finish.words), finish.constant, "table")
    value = te.compute(x.shape, lambda n: te.cast(finish.sum, x[n]), "value")
    weight = te.compute(
        weights.shape,
        lambda c, r, tap: _operand(finish, weights[c, r, tap], in_turn, tap == 0),
        "w",
    )
    unit = gcd(taps.pixel_step, taps.column_step)
    stride, dilation = taps.pixel_step // unit, taps.column_step // unit

    def output(channel: te.Expr, pixel: te.Expr) -> te.Expr:
        reached = (pixels - 1) * stride + (taps.columns - 1) * dilation + 1
        row, column = te.reduce_axis(0, taps.rows, "row"), te.reduce_axis(0, reached, "column")
        element = value[channel + row * taps.row_step + column * unit]
        ahead = column - pixel * stride
        term = finish.product(element, weight[channel, row, ahead // dilation])
        window = (ahead >= 0) & (ahead < taps.columns * dilation) & (ahead % dilation == 0)
        start = finish.start(table, channel)
        return finish.output(table, channel, te.sum(term, (row, column), start, window))

    y = te.compute(
        (channels, pixels), output, "y",
        store=lambda channel, pixel: (channel + pixel * channels,),
        buffer_shape=(pixels * channels,),
    )  # fmt: skip
    return portable(
        f"depthwise_block{pixels}_{taps.name}_{channels}_{finish.name}{'_in_turn' * in_turn}",
        f"Depthwise convolution: {pixels} x {channels} outputs, {taps.rows}x{taps.columns} taps",
        _elements_read_once(y, value, weight, rolled=rolled),
        (x, weights, table, y) if finish.words else (x, weights, y),
    )


def _elements_read_once(
    y: te.Tensor, value: te.Tensor, weight: te.Tensor, *, rolled: bool
) -> Schedule:
    """Schedules a block row by row: its weights, then each element with all pixels that need it."""
    steps = te.create_schedule(y)
    row, column, pixel = (steps.loop(y, name) for name in ("row", "column", "pixel"))
    steps.cache_write(pixel)
    steps.reorder(row, column, pixel)
    steps.compute_at(weight, row)
    steps.compute_at(value, column)
    for tensor, axis in ((weight, "tap"), (y, "pixel"), (y, "column")):
        unroll_all(steps, tensor, axis)
    if not rolled:
        steps.unroll(row)
    return steps
