"""The part that both Winograd convolutions share: which layers they take, and their windows.

Tiles beside each other are computed together.  Rows of the windows behind them are copied into
scratch as bytes, between what lies beside the image, behind the memory of their transforms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import copying, winograd_kernels
from microtir.kernels.common import convolution_geometry, gather, made_once, requantise, winograd
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Pixel, Source, cut
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant, requantised
from microtir.kernels.common.refusals import asked
from microtir.kernels.common.statements import at, let, loop, seq, when
from microtir.plan.ir import Refusal
from microtir.tir import ir

_MOST = 256  # input channels, whose transforms instructions reach
_WORD = 4
# Instructions that move so many bytes behind words, as a word that ends in zeros.
_BEHIND = (0, 2, 2, 4)


@dataclass(frozen=True, slots=True)
class Part:
    """The columns [low, high) of a block's windows that lie inside the image, of `stop` columns.

    The block begins at column `begin` of the output, and its windows at column `left` of the image.
    """

    begin: int
    left: int
    low: int
    high: int
    stop: int

    @property
    def beside(self) -> list[tuple[int, int]]:
        """Return the columns outside the image."""
        return [ends for ends in ((0, self.low), (self.high, self.stop)) if ends[0] < ends[1]]


@dataclass(frozen=True, slots=True)
class Form:
    """A layer as the kernels need it.

    Attributes:
        geometry: of the layer.
        rows: of the windows that lie in scratch.
        tiles: that are computed together.
        positions: of the transforms of a tile.
        at_once: output channels of a turn.
        window_copies: blocks whose transforms are in scratch at once.
        transformed_elements: values that are made of the weights of a turn, where the windows lay.
    """

    geometry: convolution_geometry.Geometry
    rows: int
    tiles: int
    positions: int
    at_once: int
    window_copies: int = 1
    transformed_elements: int = 0

    @property
    def channels(self) -> int:
        return winograd.padded(self.geometry.image.channels)

    @property
    def counts(self) -> tuple[Count, ...]:
        """Return how a row is cut: a last block may begin earlier."""
        return (Count(self.tiles * winograd.OUTPUTS, "block", overlaps=True, ends_apart=True),)

    @property
    def columns(self) -> int:
        return self.tiles * winograd.OUTPUTS + winograd.TAPS - 1

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return which columns of the image each block of a row reads."""
        before, width = self.geometry.windows.columns.before, self.geometry.image.width
        begins = (
            min(blocks.first + number * blocks.pixels, blocks.last)
            for blocks in cut(self.geometry.output.width, self.counts)
            for number in range(blocks.times)
        )
        return tuple(
            Part(
                b,
                b - before,
                max(before - b, 0),
                min(width + before - b, self.columns),
                self.columns,
            )
            for b in begins
        )

    @property
    def blocks(self) -> int:
        return sum(blocks.times for blocks in cut(self.geometry.output.width, self.counts))

    @property
    def transforms(self) -> int:
        """Return the values of the transformed inputs of the tiles of a block."""
        return self.positions * self.tiles * self.channels

    @property
    def windows(self) -> int:
        """Return the values of scratch, of two bytes each, before the windows."""
        return self.window_copies * self.transforms

    @property
    def values(self) -> int:
        return self.windows + max(
            self.rows * self.columns * self.channels // 2, self.transformed_elements
        )

    @property
    def is_joined(self) -> bool:
        """Return whether the pixels of a row follow each other in scratch as in the image."""
        return self.channels == self.geometry.image.channels

    @property
    def turns(self) -> int:
        """Return the turns for all output channels."""
        return -(-self.geometry.output.channels // self.at_once)

    @property
    def weight_bytes(self) -> int:
        weights = self.at_once * self.positions * self.channels * DType.INT16.bytes
        return self.turns * (weights + winograd.constants_of(self.at_once) * _WORD)

    @property
    def copied(self) -> int:
        """Return the instructions that copy a row of the windows of a block."""
        if self.is_joined:
            return self.columns * self.channels * 17 // 32 + 40
        words, behind = divmod(self.geometry.image.channels, _WORD)
        pixel = 2 * words + _BEHIND[behind]
        return self.columns * pixel + self.columns * 17 // 2 + 40

    @property
    def calls(self) -> int:
        """Return the calls that copy a row pixel by pixel, unless it is copied at once."""
        return 0 if self.is_joined else self.columns


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    weights: ir.Buffer
    constants: ir.Buffer
    rescaling: requantise.Rescaling

    @staticmethod
    def of(node: Node, positions: npt.NDArray[np.int16], at_once: int) -> Packed:
        """Return those of a node, given its transformed weights and the outputs of a turn."""
        scaling = asked(factors(node))
        words = winograd.constant_words(scaling.constants, at_once)
        weights = constant("weights", winograd.arranged(positions, at_once))
        return Packed(weights, constant("words", words), scaling.rescaling)


def matrix(node: Node) -> npt.NDArray[np.int8]:
    """Return the weights of a node."""
    weights = node.inputs[1].values
    return weights.astype(np.int8)


factors = made_once.of_node(requantised)


def refusal(node: Node, block: tuple[int, int], reached: int) -> Refusal | None:
    """Return what speaks against tiles, beside what is said of sums and factors.

    Int8 over one image, 3x3 taps beside each other, outputs for each pixel.

    Args:
        node: a convolution.
        block: pixels and channels of an output that are computed together.
        reached: pixels that instructions have to reach from the first one.
    """
    reason = winograd.window_refusal(node)
    if reason is not None:
        return reason
    geometry = convolution_geometry.Geometry.of(node)
    image, output = geometry.image, geometry.output
    if image.channels < winograd.LEAST_CHANNELS or output.channels < block[1]:
        return Refusal.FEW_CHANNELS
    fits = (
        output.width >= block[0]
        and winograd.padded(image.channels) <= _MOST
        and reached * output.channels + 1 <= winograd_kernels.IMMEDIATE
    )
    return None if fits else Refusal.SIZES


class Windows(Source):
    """Rows of the windows of a block, copied between what lies beside the image."""

    def __init__(self, layer: Layer, form: Form) -> None:
        self.form, self.x, self.y1 = form, layer.input_rows(0), layer.y1
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        self.scratch: ir.Buffer = ir.Buffer("scratch", (1, form.values), DType.INT16, alignment=4)
        zero = self.x.type.quant.zero_point
        self.border = zero * 256 + zero % 256

    def at(self, _pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.scratch, 0, 0)

    def fetch(self, column: te.Expr, y: te.Expr, number: te.Expr) -> ir.Stmt:
        """Emit the copy of a row.

        Args:
            column: of the first output of the block.
            y: row of the image, or one above or below it.
            number: of the row in scratch.
        """
        inside = partial(self._inside, column, number)
        outside = partial(self._fill, number, 0, self.form.columns)
        return gather.image_row(self.form.geometry, y, inside, outside)

    def place(self, ky: te.ExprLike, column: te.ExprLike) -> ir.BufferArgument:
        row, pixel = (te.as_expr(n, DType.INT32) for n in (ky, column))
        place = (row * self.form.columns + pixel) * (self.form.channels // 2)
        return at(self.scratch, 0, place + self.form.windows)

    def _inside(self, column: te.Expr, ky: te.Expr, y: te.Expr) -> ir.Stmt:
        """Emit a row of the windows of a block, by where it leaves the image to the sides."""
        left = column - self.form.geometry.windows.columns.before
        edges = [part for part in self.form.parts if part.beside]

        def edge(part: Part) -> ir.Stmt:
            fills = (self._fill(ky, *ends) for ends in part.beside)
            start = te.as_expr(part.left + part.low, DType.INT32)
            return seq(*fills, self._move(ky, y, start, part.low, part.high))

        if not edges:
            return self._move(ky, y, left, 0, self.form.columns)
        body = edge(edges[-1])
        for part in reversed(edges[:-1]):
            body = when(column == part.begin, edge(part), body)
        if len(edges) == len(self.form.parts):
            return body
        width = self.form.geometry.image.width

        def anywhere(start: te.Expr) -> ir.Stmt:
            inner = self._move(ky, y, start, 0, self.form.columns)
            return when((start >= 0) & (start + self.form.columns <= width), inner, body)

        # By a name, so that whoever follows the accesses narrows it where the condition holds.
        return let("left", left, anywhere)

    def _move(self, ky: te.Expr, y: te.Expr, start: te.Expr, low: int, high: int) -> ir.Stmt:
        """Emit columns [low, high) of a row, from a column of the image on."""
        channels = self.form.geometry.image.channels
        if self.form.is_joined:
            whole = winograd_kernels.move((high - low) * channels)
            return call(whole, self.x.at(y, start, 0), self.place(ky, low))
        kernel = winograd_kernels.move(channels)
        return loop(
            "col", 0, high - low,
            lambda n: call(kernel, self.x.at(y, start + n, 0), self.place(ky, n + low)),
        )  # fmt: skip

    def _fill(self, ky: te.Expr, first: int, stop: int) -> ir.Stmt:
        size = (stop - first) * self.form.channels // 2
        return call(copying.fill(size, self.border, DType.INT16), self.place(ky, first))
