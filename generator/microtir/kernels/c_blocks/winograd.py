"""Convolutions of 3x3 taps by Winograd's F(2x2, 3x3), in plain C.

The four rows behind two output rows lie in scratch, channel by channel and between their borders.
Four tiles beside each other are transformed, multiplied with a few output channels at a time, whose
weights were transformed offline, and become outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.c_blocks import finish
from microtir.kernels.c_blocks.blocks import Blocks, Suits
from microtir.kernels.c_blocks.winograd_kernels import (
    PLACES,
    TRANSFORMS,
    Block,
    inputs,
    move,
    products,
)
from microtir.kernels.common import gather, made_once, micro_kernel, packing, requantise, winograd
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Pixel, cut, over_row, over_rows
from microtir.kernels.common.refusals import asked
from microtir.kernels.common.runs import turns_of
from microtir.kernels.common.statements import at, let, loop, seq, store, when
from microtir.kernels.common.winograd import COLUMNS, OUTPUTS, PIXELS, POSITIONS, SIDE, TAPS
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import IN_ONE_CALL, Calls, Refusal
from microtir.tir import ir

_COUNTS = (Count(PIXELS, "block", overlaps=True),)
_WORD = 4


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of the parts of a layer, in instructions or in cycles, from counts on emulators."""

    block: float  # four tiles: their windows, beside what each channel takes
    channel: float  # an input channel of four tiles: its windows and their transform
    turn: float  # the output channels of a turn: calls, and sums at their positions
    loop: float  # a turn of the loop of a sum
    step: float  # an input channel of a sum
    output: float
    ties: float  # of an output, if ties are corrected
    shift: float  # of an output, if each channel has its own


@dataclass(frozen=True, slots=True)
class Form:
    """A block of sums and what it takes.

    Attributes:
        block: the sums.
        instructions: what emulators count.
        cycles: the same in cycles.
        code: bytes of the kernels.
        told, told_cycles: percent of these that planning is told. Blocks of plain C state what a
            Cortex-M3 takes on any CPU (`WorkPercent`): where that is less than it takes there, so
            is this.
    """

    block: Block
    instructions: Prices
    cycles: Prices
    code: int
    told: int = 100
    told_cycles: int = 100


# 8 sums are what 14 registers hold beside weights, a transform and pointers.
FAST = Form(
    Block(2, turn=8),
    Prices(304, 388, 548, 19.3, 12.8, 17.7, 0.7, 0.7),
    Prices(698, 428, 618, 30.1, 24.3, 21.7, 0.5, 0.5),
    code=1900,
    told_cycles=71,
)
# 28 registers hold 16 sums if operands do not come early.
WIDE = Form(
    Block(4, turn=1, in_turn=True),
    Prices(300, 412, 1171, 0, 42.7, 22.5, 2.4, 0),
    Prices(857, 635, 1629, 0, 84.6, 34.0, 2.4, 0.3),
    code=1900,
    told=65,
    told_cycles=43,
)
# 8 registers hold 4 sums at best: a product overwrites an operand, and loads that extend a value
# take their offset from a register.
NARROW = Form(
    Block(1, turn=1, lane=DType.INT32),
    Prices(159, 556, 551, 0, 19.2, 56.9, 2.2, 3.9),
    Prices(322, 837, 737, 0, 26.3, 69.8, 1.7, 4.9),
    code=1400,
    told=34,
    told_cycles=32,
)


def _matrix(node: Node) -> npt.NDArray[np.int8]:
    weights = node.inputs[1].values
    return weights.astype(np.int8)


@made_once.of_node
def _finish(node: Node) -> tuple[finish.Requantise, finish.Table] | None:
    """Return what the layer does with its sums; None if integers do not do it."""
    finish_and_table = finish.finish_of(node)
    if finish_and_table is None or not isinstance(finish_and_table[0], finish.Requantise):
        return None
    assert finish_and_table[1] is not None
    return finish_and_table[0], finish_and_table[1]


def _known(node: Node) -> tuple[finish.Requantise, finish.Table]:
    return asked(_finish(node))


class _Steps:
    """The steps for a block: copy and transform its windows, then compute a few channels at a time.

    Args:
        layer: whose function it is.
        block: of sums.
    """

    def __init__(self, layer: Layer, block: Block) -> None:
        node = layer.node
        self.form, self.geometry, self.y1 = block, Geometry.of(node), layer.y1
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        self.finish, table = _known(node)
        starts = turns_of(self.geometry.output.channels, block.channels)
        order = [start + n for start in starts for n in range(block.channels)]
        weights = winograd.transformed(_matrix(node))[order]
        turns = weights.reshape(len(starts), block.channels, POSITIONS, -1)
        self.weights = packing.constant("weights", turns.transpose(0, 2, 3, 1))
        self.table = packing.constant("constants", table[order])
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        channels = self.geometry.image.channels
        self.transforms = channels * TRANSFORMS
        values = channels * PLACES + self.transforms
        self.scratch = ir.Buffer("scratch", (1, values), block.lane, alignment=4)

    def block(self, pixel: Pixel, _count: int) -> ir.Stmt:
        """Emit the outputs of four tiles."""
        geometry, before = self.geometry, self.geometry.windows.rows.before
        # Behind the last row of a call nothing may be read; what is computed there is not written.
        lowest = self.y1 - 1 + (TAPS - 1) - before

        def fetch(ky: te.Expr) -> ir.Stmt:
            y = te.minimum(pixel.row - before + ky, lowest)
            inside = partial(self._inside, pixel.column, ky)
            outside = partial(self._outside, ky)
            return gather.image_row(geometry, y, inside, outside)

        transform = micro_kernel.call(
            inputs(geometry.image.channels, self.form.lane), self._place(0, 0), self._transforms()
        )
        last = te.minimum(pixel.row + 1, self.y1 - 1)
        rows = (self.y.at(row, pixel.column, 0) for row in (pixel.row, last))
        multiply = micro_kernel.call(
            products(
                geometry.image.channels, geometry.output.channels, self.form, self.finish
            ),
            self._transforms(), at(self.weights, 0, 0, 0, 0), at(self.table, 0, 0), *rows,
            te.minimum(self.y1 - pixel.row, OUTPUTS),
        )  # fmt: skip
        return seq(loop("ky", 0, SIDE, fetch), transform, multiply)

    def _inside(self, column: te.Expr, ky: te.Expr, y: te.Expr) -> ir.Stmt:
        """Emit a row of the windows, pixel by pixel: some may lie beside the image."""
        left, image = column - self.geometry.windows.columns.before, self.geometry.image
        kernel = move(image.channels, self.form.lane)

        def there(number: te.Expr, x: te.Expr) -> ir.Stmt:
            moved = micro_kernel.call(kernel, self.x.at(y, x, 0), self._place(ky, number))
            if not self.geometry.clips_columns:
                return moved
            return when((x >= 0) & (x < image.width), moved, self._fill(ky, number))

        return loop("col", 0, COLUMNS, lambda n: let("x_col", left + n, partial(there, n)))

    def _outside(self, ky: te.Expr) -> ir.Stmt:
        return loop("col", 0, COLUMNS, partial(self._fill, ky))

    def _fill(self, ky: te.Expr, number: te.Expr) -> ir.Stmt:
        """Emit a pixel beside the image, which is the zero point."""
        zero = te.as_expr(self.x.type.quant.zero_point, self.form.lane)
        first = ky * COLUMNS + number + self.transforms
        return loop(
            "ch", 0, self.geometry.image.channels,
            lambda c: store(self.scratch, (0, first + c * PLACES), zero),
        )  # fmt: skip

    def _transforms(self) -> ir.BufferArgument:
        return at(self.scratch, 0, 0)

    def _place(self, ky: te.ExprLike, number: te.ExprLike) -> ir.BufferArgument:
        """Return where the first channel of a pixel of the windows lies."""
        row, column = (te.as_expr(n, DType.INT32) for n in (ky, number))
        return at(self.scratch, 0, row * COLUMNS + column + self.transforms)


def _loops(inputs: int, turn: int) -> int:
    """Return the turns of the loop of a sum, if it has one."""
    whole = inputs // turn
    return whole if whole > 1 else 0


def _blocks(node: Node, calls: Calls) -> tuple[int, int]:
    """Return the blocks of four tiles that all calls for a node compute, and those of a row."""
    output = Geometry.of(node).output
    rows_per_call = calls.rows or output.height
    whole, rest = divmod(output.height, rows_per_call)
    rows = whole * -(-rows_per_call // OUTPUTS) + -(-rest // OUTPUTS)
    if rows_per_call == OUTPUTS and not calls.alone:
        # The first call of a group is for one row where its reader has one ahead.
        rows += 1
    of_row = sum(part.times for part in cut(output.width, _COUNTS))
    return rows * of_row, of_row


def _total(node: Node, block: Block, prices: Prices, calls: Calls) -> float:
    geometry, rescaling = Geometry.of(node), _known(node)[0].rescaling
    output, channels = geometry.output, geometry.image.channels
    turns = len(turns_of(output.channels, block.channels))
    position = prices.loop * _loops(channels, block.turn) + prices.step * channels
    of_output = (
        prices.output
        + prices.ties * rescaling.corrects_ties
        + prices.shift * (rescaling.shift is None)
    )
    blocks, of_row = _blocks(node, calls)
    written = output.height * of_row * PIXELS
    return (
        blocks * (prices.block + prices.channel * channels)
        + blocks * turns * (prices.turn + POSITIONS * position)
        + written * turns * block.channels * of_output
    )


class Winograd(Blocks[Form]):
    """Tiles of two rows by two columns, whose weights were transformed offline."""

    operators = (Conv2D,)
    rescales_in_float = True
    depends_on_calls = True

    def __init__(self, name: str, form: Form, suits: Suits) -> None:
        super().__init__(name, form, Kernel.cycles, suits)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8 over one image, 3x3 taps beside each other, outputs for each pixel, whole tiles.
        """
        reason = winograd.window_refusal(node)
        if reason is not None:
            return reason
        image, output = Geometry.of(node).image, Geometry.of(node).output
        least = max(self.form.block.channels, 2)
        if image.channels < winograd.LEAST_CHANNELS or output.channels < least:
            return Refusal.FEW_CHANNELS
        if output.width < PIXELS:
            return Refusal.SIZES
        if not winograd.fits(winograd.transformed(_matrix(node))):
            return Refusal.SUMS
        return Refusal.FORM if _finish(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the windows of four tiles, and of their transforms."""
        return Geometry.of(node).image.channels * (PLACES + TRANSFORMS) * self.form.block.lane.bytes

    def weight_bytes(self, node: Node) -> int:
        """Return the bytes of transformed weights, and of what requantisation needs."""
        geometry, per_turn = Geometry.of(node), self.form.block.channels
        turns = len(turns_of(geometry.output.channels, per_turn))
        weights = POSITIONS * geometry.image.channels * DType.INT16.bytes
        return turns * per_turn * (weights + requantise.WORDS * _WORD)

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions of all calls, as planning compares them."""
        form = self.form
        return round(_total(node, form.block, form.instructions, calls) * form.told / 100)

    def cycles_of(self, node: Node, instructions: int) -> int:
        """Return the cycles of so many instructions, by the share of each part."""
        form = self.form
        counted = _total(node, form.block, form.instructions, IN_ONE_CALL) * form.told
        waited = _total(node, form.block, form.cycles, IN_ONE_CALL) * form.told_cycles
        return round(instructions * waited / counted)

    def code_bytes(self, _node: Node) -> int:
        return self.form.code

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: two output rows at a time, four tiles beside each other."""
        steps = _Steps(layer, self.form.block)
        width = steps.geometry.output.width
        y0, y1 = (te.as_expr(y, DType.INT32) for y in (layer.y0, layer.y1))
        rows = over_rows(y0, y1, OUTPUTS, lambda row: over_row(row, width, _COUNTS, steps.block))
        return layer.function(name, steps.scratch, rows)
