"""Winograd's F(2x2, 3x3) with weights of int8 in flash, transformed where they are needed.

The inputs of all tiles of a band of rows are transformed first, and kept in scratch.  Then two
output channels per iteration: their weights are transformed, in place of the windows, and
multiplied with
the inputs of the band.  The more rows it has, the fewer the transforms of weights.
"""

from __future__ import annotations

from dataclasses import replace

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import winograd_kernels, winograd_windows, winograd_work
from microtir.kernels.arm_dsp.winograd import (
    CYCLES,
    Squares,
    TwoRows,
    Winograd,
    bands,
    block_work,
    form_of,
    kernel_bytes,
)
from microtir.kernels.common import refusals, weights, winograd
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import (
    Arguments,
    Pixel,
    Product,
    Tile,
    Turns,
    macro_kernel,
)
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant
from microtir.kernels.common.statements import at
from microtir.kernels.common.winograd import OUTPUTS, PAIR, PIXELS, POSITIONS, TAPS
from microtir.plan.ir import Calls
from microtir.schedule import KernelDescription
from microtir.tir import ir

# Instructions of the weights of four input and two output channels, and where loads do not reach
# all positions; those around a turn, and around a block.
_WEIGHTS, _FAR, _TURN, _BLOCK = 286, 16, 40, 30
_WEIGHTS_CODE = 900  # bytes, with the loops over turns


class WinogradBands(Winograd):
    """Tiles of two rows by two columns, of a band of rows, for which weights are transformed.

    With transformed weights in flash it would be faster, and along rows it would take less RAM.
    """

    is_for_little_flash = True

    def __init__(self, name: str, rows: int) -> None:
        self.name, self.rows = name, rows

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes of the transforms of a band, and of windows or of weights."""
        return self._form(node, calls.rows).values * DType.INT16.bytes

    def weight_bytes(self, node: Node) -> int:
        """Return the bytes of weights, in whole words, and of what requantisation needs."""
        form = form_of(node)
        taps = form.geometry.output.channels * TAPS * TAPS
        return taps * form.channels + form.turns * winograd.constants_of(PAIR) * DType.INT32.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        return self._work(node, calls).instructions

    def cycles_of(self, node: Node, instructions: int) -> int:
        """Return cycles by the shares of the parts, weights among them."""
        return self._work(node, Calls()).cycles(instructions, CYCLES)

    def _work(self, node: Node, calls: Calls) -> winograd_work.Work:
        form = form_of(node)
        height = form.geometry.output.height
        block = block_work(node, form, form.turns)
        blocks = form.blocks * bands(height, calls, OUTPUTS)
        turns = form.turns * bands(height, calls, self.rows)
        far = _FAR if winograd_kernels.lie_far(form.channels) else 0
        transforming = form.channels // weights.QUAD * (_WEIGHTS + far) + _TURN
        return winograd_work.Work(
            copied=blocks * block.copied,
            transformed=blocks * (block.transformed + _BLOCK),
            summed=blocks * block.summed,
            finished=blocks * block.finished,
            weights=turns * transforming,
            calls=blocks * block.calls,
        )

    def code_bytes(self, node: Node) -> int:
        return kernel_bytes(form_of(node)) + _WEIGHTS_CODE

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: the inputs of a band, then two output channels per iteration."""
        node, form = layer.node, self._form(layer.node, layer.call_rows)
        output, scaling = form.geometry.output, refusals.asked(winograd_windows.factors(layer.node))
        packed_weights = constant("weights", winograd.pairs_of_bytes(winograd_windows.matrix(node)))
        words = constant("words", winograd.constant_words(scaling.constants))
        source, sink = _Band(layer, form), _TwoChannels(layer)

        def first(turn: te.Expr) -> te.Expr:
            whole = output.channels % PAIR == 0
            return turn * PAIR if whole else te.minimum(turn * PAIR, output.channels - PAIR)

        def make(turn: te.Expr) -> ir.Stmt:
            kernel = winograd_kernels.weights(form.channels)
            return call(kernel, at(packed_weights, first(turn), 0, 0), source.place(0, 0))

        def kernel(_pixels: int) -> KernelDescription:
            return winograd_kernels.products(form.channels, 1, output.channels, scaling.rescaling)

        def product(turn: te.Expr) -> Product:
            return Product(kernel, (source.place(0, 0), at(words, turn, 0)), first(turn))

        turns = Turns(form.turns, self.rows, make, product)
        tile = Tile(form.counts, (), rows=OUTPUTS, turns=turns)
        return macro_kernel(layer, name, output.width, source, tile, sink)

    def _form(self, node: Node, call_rows: int) -> winograd_windows.Form:
        """Return a layer of which the transforms of a band lie in scratch."""
        form = form_of(node)
        rows = min(self.rows, call_rows or form.geometry.output.height)
        transformed = POSITIONS * form.channels * PAIR
        return replace(
            form, window_copies=-(-rows // OUTPUTS) * form.blocks, transformed_elements=transformed
        )


class _TwoChannels(TwoRows):
    """Two channels of the outputs, which have others unless they have two."""

    def at(self, pixel: Pixel, channel: te.ExprLike) -> Arguments:
        places = super().at(pixel, 0)
        return places if self.channels == PAIR else (*places, te.as_expr(channel, DType.INT32))


class _Band(Squares):
    """The windows of two output rows, and the transforms of a band."""

    def at(self, pixel: Pixel, _count: int) -> ir.BufferArgument:
        form = self.form
        number = (pixel.column + (PIXELS - 1)) // PIXELS
        lines = form.window_copies // form.blocks
        if lines > 1:
            # A ring, since a band may begin at any row.
            number = number + pixel.row // OUTPUTS % lines * form.blocks
        return at(self.scratch, 0, number * form.transforms)
